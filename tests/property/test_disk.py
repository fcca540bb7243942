"""Model files on disk: what `save` may replace, who may read it, and what `load` may open."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginwise import ModelFileError, OnlineSVC, load, save
from marginwise._files import disk as _disk

posix = pytest.mark.skipif(os.name == "nt", reason="devices, FIFOs and permissions of POSIX")

X = np.random.RandomState(0).standard_normal((40, 2))
MODEL = OnlineSVC(random_state=0).fit(X, X[:, 0] > 0)


def write_text(path: Path, text: bytes = b"text") -> None:
    _disk.replace_file(path, lambda handle: handle.write(text))


# -- only regular files ------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("linked", [False, True])
def test_special_files_are_neither_replaced_nor_read(
    linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with socket.socket(socket.AF_UNIX) as door:
        monkeypatch.chdir(tmp_path)  # names of sockets are short
        door.bind("socket")
        special = {
            fifo: "a FIFO",
            tmp_path / "socket": "a socket",
            Path("/dev/null"): "a character device",
            Path("/dev/zero"): "a character device",
            tmp_path: "a directory",
        }
        for path, kind in special.items():
            before = path.stat()
            given = path
            if linked:
                given = tmp_path / f"link to {path.name}"
                given.symlink_to(path)
            for use in (lambda path=given: save(MODEL, path), lambda path=given: load(path)):
                with pytest.raises(OSError, match=f"{kind}, where a regular file is expected"):
                    use()
            after = path.stat()
            assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)
    assert not list(tmp_path.glob(".mwz*"))


@posix
def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse.mwz").open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(ModelFileError, match="not a zip file"):
        load(tmp_path / "sparse.mwz")
    with (tmp_path / "sparse.mwz").open("r+b") as file:
        file.seek(-22, os.SEEK_END)
        file.write(b"PK\5\6" + bytes(18))
    with pytest.raises(ModelFileError, match="MemoryError"):
        load(tmp_path / "sparse.mwz")


# -- permissions -------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("mode", [None, 0o600, 0o640, 0o644])
def test_a_temporary_is_not_more_readable_than_the_file(mode: int | None, tmp_path: Path) -> None:
    path = tmp_path / "m.mwz"
    if mode is not None:
        path.touch()
        path.chmod(mode)
    seen: list[int] = []

    def look(_: Any) -> None:
        seen.extend(p.stat().st_mode & 0o777 for p in tmp_path.iterdir() if p != path)

    umask = os.umask(0o027)
    try:
        _disk.replace_file(path, look)
    finally:
        os.umask(umask)
    wanted = 0o640 if mode is None else mode
    assert stat.S_IMODE(path.stat().st_mode) == wanted
    assert [found & ~wanted for found in seen] == [0]


# -- temporaries of processes that were killed -------------------------------------------------

SLOW = """
import sys, time
from marginwise._files import disk as _disk
def write(handle):
    handle.write(b"half a file")
    handle.flush()
    print("writing", flush=True)
    time.sleep(60)
_disk.replace_file(sys.argv[1], write)
"""


def start_writer(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SLOW, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


@pytest.mark.slow
@posix
def test_the_next_save_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    killed, alive = start_writer(tmp_path / "a.mwz"), start_writer(tmp_path / "b.mwz")
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait(10)
        left = {path.name for path in tmp_path.iterdir()}
        assert len(left) == 2
        foreign = tmp_path / ".mwz-1-notes.tmp"
        foreign.write_text("not ours")
        save(MODEL, tmp_path / "c.mwz")
        now = {path.name for path in tmp_path.iterdir()} - {"c.mwz", foreign.name}
        assert len(now) == 1
        assert f"-{alive.pid}-" in now.pop()
    finally:
        for process in (killed, alive):
            process.kill()
            process.communicate()


@posix
def test_a_temporary_removed_before_it_was_locked_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, calls = _disk._lock, []

    def late(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            next(tmp_path.glob(".mwz-*")).unlink()
        elif len(calls) == 2:
            next(tmp_path.glob(".mwz-*")).unlink()
            raise BlockingIOError
        lock(descriptor)

    monkeypatch.setattr(_disk, "_lock", late)
    write_text(tmp_path / "m")
    assert len(calls) == 3
    assert os.listdir(tmp_path) == ["m"]
    assert (tmp_path / "m").read_bytes() == b"text"


@posix
def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = tmp_path / ".mwz-1-0123456789abcdef.tmp"
    left.touch()

    def refuse(_: int) -> None:
        raise OSError("no locks available")

    with monkeypatch.context() as patch:
        patch.setattr(_disk, "_lock", refuse)
        write_text(tmp_path / "m")
    assert sorted(os.listdir(tmp_path)) == [left.name, "m"]
    write_text(tmp_path / "m")
    assert os.listdir(tmp_path) == ["m"]


def test_many_writers_of_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    def write(k: int) -> None:
        for _ in range(20):
            _disk.replace_file(tmp_path / f"{k % 2}", lambda file: time.sleep(0.001))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]
