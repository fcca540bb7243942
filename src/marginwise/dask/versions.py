"""Versions of marginwise: the driver and all workers must have the same one."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from distributed import Client, get_worker


class VersionError(RuntimeError):
    """The versions of marginwise on a worker and on the driver differ."""


def installed_version() -> str:
    """Return the version of marginwise in this process."""
    return version("marginwise")


def check_version(expected: str) -> None:
    """Raise unless this worker process has the driver's version of marginwise."""
    found = installed_version()
    if found != expected:
        try:
            worker = f"the worker {get_worker().address}"
        except ValueError:
            worker = "a worker"
        raise _differs(worker, found, expected)


def check_workers(client: Client) -> None:
    """Raise unless all workers have this version of marginwise."""

    def release() -> str | None:  # sent as code, because workers may lack marginwise
        try:
            return version("marginwise")
        except PackageNotFoundError:
            return None

    own, found = installed_version(), client.run(release)
    for worker, theirs in sorted(found.items()):
        if theirs != own:
            raise _differs(f"the worker {worker}", theirs, own)


def _differs(worker: str, theirs: Any, own: str) -> VersionError:
    has = "does not have marginwise" if theirs is None else f"has marginwise {theirs}"
    return VersionError(
        f"{worker} {has}, but the driver has marginwise {own}: their results could differ. Install "
        "the same version everywhere."
    )
