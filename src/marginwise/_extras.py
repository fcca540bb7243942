"""Commands that install extras."""

from __future__ import annotations

import json
import os
from importlib.metadata import PackageNotFoundError, distribution
from urllib.parse import urlsplit
from urllib.request import url2pathname


def install(extra: str) -> str:
    """Return the command that installs an extra, for the end of an error message.

    It fits how the package was installed: from a folder, such as a clone of the repository, or by
    its name.
    """
    folder = _installed_from()
    if folder is None:
        return f"pip install 'marginwise[{extra}]'"
    return f"pip install '.[{extra}]' in {folder}"


def _installed_from() -> str | None:
    """Return the folder from which the package was installed; None if there is none any more."""
    try:
        record = distribution("marginwise").read_text("direct_url.json")
        found = json.loads(record or "{}")
        folder = url2pathname(urlsplit(found["url"]).path) if "dir_info" in found else ""
    except (PackageNotFoundError, ValueError, KeyError):
        return None
    return folder if os.path.isdir(folder) else None
