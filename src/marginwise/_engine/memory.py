"""The default size of the kernel cache, and the memory available to this process."""

from __future__ import annotations

import functools
import multiprocessing
import os
from pathlib import Path

import joblib

AUTO = -1  # value of `Plan.cache_bytes`: depends on the available memory
SHARE = 4  # kernel rows may use one SHARE-th of the available memory
LEAST, MOST = 200 * 2**20, 8 * 2**30
WATCHED = 256 * 2**20  # bytes of features from which on the available memory is checked
UNKNOWN = 8 * 2**30  # assumed if the system does not report it


@functools.cache
def auto_bytes(process: int) -> int:
    """Return the maximum size of kernel rows, determined once, when the first model is built.

    Memory is allocated only when rows are needed. Workers of a process pool share what is
    available.

    Parameters
    ----------
    process : int
        Id of this process, so that a forked worker determines its own value.
    """
    is_worker = multiprocessing.current_process().name != "MainProcess"
    sharing = SHARE * (int(joblib.cpu_count()) if is_worker else 1)
    return min(max(available() // sharing, LEAST), MOST)


def available() -> int:
    """Return the bytes that machine, cgroups and limits still allow this process to allocate."""
    known: list[int] = []
    for ask in (_of_machine, _of_cgroups, _of_limits):
        try:
            known += ask()
        except (ValueError, IndexError):  # another format
            continue
    return min(known, default=UNKNOWN)


def _of_machine() -> list[int]:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return [1024 * int(line.split()[1])]
    try:
        return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2]
    except (AttributeError, OSError):  # not a POSIX system
        return []


def _of_limits() -> list[int]:
    """Return the remaining address space of the process (``ulimit -v``)."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return []
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return []
    pages = _read("/proc/self/statm").split()
    return [max(most - int(pages[0]) * os.sysconf("SC_PAGE_SIZE"), 0)] if pages else [most // 2]


def _of_cgroups() -> list[int]:
    """Return the remaining memory within the limits of the process's cgroup and its parents."""
    left = []
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "memory" in controllers.split(","):
            root = Path("/sys/fs/cgroup") / controllers
            names = ("memory.max", "memory.current", "inactive_file")
            if controllers:  # version 1
                names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            below = root / path.lstrip("/")
            for folder in [below, *below.parents]:
                if folder.is_relative_to(root):
                    left += _left_in(folder, *names)
    return left


def _left_in(folder: Path, limit: str, usage: str, reclaimable: str) -> list[int]:
    most, used = _read(folder / limit).strip(), _read(folder / usage).strip()
    if not most.isdigit() or not used.isdigit():  # "max", or no such file
        return []
    counts = dict(line.split()[:2] for line in _read(folder / "memory.stat").splitlines())
    return [max(int(most) - int(used) + int(counts.get(reclaimable, 0)), 0)]


def _read(path: str | Path) -> str:
    """Return the text of a file, or an empty string if it cannot be read."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
