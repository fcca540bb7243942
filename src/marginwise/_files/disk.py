"""Files on disk: atomic replacement, and reading of regular files only."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

StrPath = str | os.PathLike[str]

_TEMPORARY = re.compile(r"\.mwz-\d+-[0-9a-f]{16}\.tmp")
_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def replace_file(path: StrPath, write: Callable[[BinaryIO], object]) -> None:
    """Write a temporary file and move it to `path` only when it is complete.

    Links are followed, and the permissions of an existing file are preserved. At no time is the new
    file readable by more users than the file that it replaces.

    Parameters
    ----------
    path
        The file to replace or to create. It must not be a directory or a device.
    write
        Called with the open file; writes its content.
    """
    target = Path(os.path.realpath(path))
    mode = _mode_of(target)
    _remove_abandoned(target.parent)
    temporary = _temporary_beside(target)
    try:
        while (handle := _create_locked(temporary, 0o666 if mode is None else 0o600)) is None:
            temporary = _temporary_beside(target)
        with handle:
            write(handle)
            handle.flush()
            os.fsync(handle.fileno())
            if mode is not None:
                os.chmod(temporary, mode)
            if sys.platform != "win32":  # still locked, so that no other process removes it
                os.replace(temporary, target)
        if sys.platform == "win32":  # open files cannot be moved there
            os.replace(temporary, target)
    except FileNotFoundError as error:
        if target.parent.is_dir():
            raise
        raise FileNotFoundError(errno.ENOENT, "No such directory", str(target.parent)) from error
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)  # errors of an open file do not include it
        raise


def read_file(path: StrPath, ending: Callable[[bytes], None], tail: int) -> bytes:
    """Return the content of a regular file, reading no more than its size.

    Devices and FIFOs, which may never end, are refused with an OSError.

    Parameters
    ----------
    path
        The file; links are followed.
    ending
        Called with the last `tail` bytes before the rest is read; may raise.
    tail
        Number of bytes that `ending` needs.
    """
    _require_regular(path, os.stat(path).st_mode)
    # Without O_NONBLOCK, opening would wait if the file became a FIFO in the meantime.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as handle:
        status = os.fstat(handle.fileno())
        _require_regular(path, status.st_mode)
        handle.seek(max(status.st_size - tail, 0))
        ending(handle.read(tail))
        handle.seek(0)
        return handle.read(status.st_size)


def _mode_of(target: Path) -> int | None:
    """Return the permissions of a file that will be replaced; None if there is none."""
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return None
    _require_regular(target, mode)
    return stat.S_IMODE(mode)


def _require_regular(path: StrPath, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((name for test, name in _KINDS if test(mode)), "not a regular file")
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    raise OSError(number, f"{kind}, where a regular file is expected", os.fspath(path))


# -- temporaries -------------------------------------------------------------------------------
#
# A temporary file is locked while its writer is alive, so one that can be locked is abandoned.
# Unlike process ids, locks also work across containers and network file systems.


def _temporary_beside(target: Path) -> Path:
    return target.parent / f".mwz-{os.getpid()}-{secrets.token_hex(8)}.tmp"


def _create_locked(path: Path, mode: int) -> BinaryIO | None:
    """Create and lock a file; None if another process removes it before it is locked."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = open(os.open(path, flags, mode), "wb")  # noqa: SIM115  the caller closes it
    try:
        _lock(handle.fileno())
    except BlockingIOError:
        handle.close()
        return None
    except OSError:  # no locks on this file system, so no process removes temporary files
        return handle
    if sys.platform == "win32" or os.fstat(handle.fileno()).st_nlink > 0:
        return handle
    handle.close()
    return None


def _lock(descriptor: int) -> None:
    """Lock an open file, or raise BlockingIOError if another process has locked it."""
    if sys.platform != "win32":  # on Windows, open files cannot be removed anyway
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of killed processes."""
    try:
        names = [name for name in os.listdir(folder) if _TEMPORARY.fullmatch(name)]
    except OSError:  # a folder that allows writing files but not listing them
        return
    for name in names:
        path = folder / name
        try:
            if sys.platform != "win32":
                descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    _lock(descriptor)
                    path.unlink()
                finally:
                    os.close(descriptor)
            else:
                path.unlink()
        except OSError:  # in use, removed by another process, or of another user
            continue
