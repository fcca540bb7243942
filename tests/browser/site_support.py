"""The built documentation, served from this machine."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs"


def pages() -> list[str]:
    """Return the addresses of all pages, relative to the site."""
    found = (path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    apart = ("_static/", "_modules/", "_downloads/")  # not pages with the design of the site
    return sorted(name for name in found if not name.startswith(apart))


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    """Serve the site while the context lasts; yield its address."""
    handler = functools.partial(Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
