"""Resident memory of this process, in bytes."""

from __future__ import annotations

import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def _field(name: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise OSError(f"{STATUS} has no {name}")


def resident() -> int:
    """Return the resident memory; on systems other than Linux, its peak."""
    return _field("VmRSS") if STATUS.exists() else peak()


def peak() -> int:
    """Return the peak resident memory, of the process or since `forget_peak`.

    On Linux, ru_maxrss is not used, because a new process inherits that of its parent.
    """
    if STATUS.exists():
        return _field("VmHWM")
    import resource  # absent on Windows

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size


def forget_peak() -> None:
    """Reset the peak, if the system supports it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return
