"""The web application: routes, JSON requests and responses, and the server that runs it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any

from marginwise._extras import install
from marginwise.label.images import served
from marginwise.label.opening import StoreError
from marginwise.label.security import Address, App, Guard, Message, RefusedError, Scope
from marginwise.label.session import Session

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
}
NO_PAGE = b"<!doctype html><html lang=en><title>marginwise</title><p>The page is not installed."
MOST_HISTORY = 200
GRACE = 0.2  # seconds in which responses are completed after SIGINT


def need_starlette() -> None:
    """Raise ImportError with an installation command if the web server is not installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "the labelling page is served with Starlette and uvicorn, which are not installed. "
            f"Run {install('label')}."
        ) from error


def make_app(
    session: Session,
    address: Address,
    routes: list[Any] | None = None,
    bodies: Mapping[str, int] | None = None,
) -> App:
    """Return the ASGI application for a session.

    Parameters
    ----------
    session : Session
        The session.
    address : Address
        Address and token of the server.
    routes : list of Route, default=None
        Additional routes.
    bodies : dict of str to int, default=None
        Maximum size of request bodies, in bytes, for paths that need more than the default.

    Returns
    -------
    app : ASGI application
        The application. `Guard` checks every request.
    """
    need_starlette()
    from starlette.applications import Starlette

    every = [*_routes(session, address), *(routes or [])]
    app = Starlette(routes=every, exception_handlers=_HANDLERS)
    app.router.redirect_slashes = False
    return Guard(app, address, _refusal, bodies)


# -- responses -------------------------------------------------------------------------------------


def _json(content: dict[str, Any], status: int = 200) -> Any:
    from starlette.responses import Response

    body = json.dumps({"ok": status < 400, **content}, ensure_ascii=False, allow_nan=False)
    return Response(body.encode(), status, media_type="application/json")


def _refusal(denied: RefusedError) -> App:
    answer: App = _json({"error": str(denied)}, denied.status)
    return answer


def _on_error(request: Any, error: Any) -> Any:
    """Return the response for an invalid request."""
    status = getattr(error, "status_code", None) or (404 if isinstance(error, KeyError) else 400)
    message = getattr(error, "detail", None) or (error.args[0] if error.args else str(error))
    return _json({"error": str(message)}, status)


def _on_fault(request: Any, error: Any) -> Any:
    """Return the response for an error of the server, such as a full disk."""
    return _json({"error": str(error) or type(error).__name__}, 500)


_HANDLERS: Any = {
    StoreError: _on_fault,
    ValueError: _on_error,
    KeyError: _on_error,
    404: _on_error,
    405: _on_error,
}


# -- routes ----------------------------------------------------------------------------------------


def _routes(session: Session, address: Address) -> list[Any]:
    from starlette.routing import Route

    pages = _pages()
    gets: dict[str, Callable[[Any], Any]] = {
        "/": lambda request: _index(request, address, pages),
        "/page/{name:path}": lambda request: _page(pages, request.path_params["name"]),
        "/api/state": lambda request: _json(session.state()),
        "/api/history": lambda request: _json(_history(session, request.query_params)),
        "/api/item/{id}": lambda request: _json({"item": session.item(request.path_params["id"])}),
        "/api/image/{id}": lambda request: _image(session, request.path_params["id"]),
        "/api/guess/{id}": lambda request: _json(
            {"guess": session.guess(request.path_params["id"])}
        ),
        "/api/progress": lambda request: _json({"progress": session.progress()}),
    }
    posts: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "/api/answer": lambda given: session.answer(
            _text(given, "key"), _text(given, "item"), _text(given, "label"), _duration(given)
        ),
        "/api/skip": lambda given: session.skip(
            _text(given, "key"), _text(given, "item"), _duration(given)
        ),
        "/api/undo": lambda given: session.undo(_text(given, "key")),
        "/api/flag": lambda given: session.flag(
            _text(given, "key"), _text(given, "item"), _truth(given, "on")
        ),
        "/api/note": lambda given: session.note(
            _text(given, "key"), _text(given, "item"), _text(given, "text", empty=True)
        ),
    }
    made = [Route(path, _in_thread(function), methods=["GET"]) for path, function in gets.items()]
    return made + [
        Route(path, _posted(function), methods=["POST"]) for path, function in posts.items()
    ]


def _in_thread(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return an endpoint that runs in a thread and does not block other requests."""
    from starlette.concurrency import run_in_threadpool

    async def endpoint(request: Any) -> Any:
        return await run_in_threadpool(function, request)

    return endpoint


def _posted(function: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Any], Any]:
    """Return an endpoint that receives and returns JSON objects."""
    from starlette.concurrency import run_in_threadpool

    async def endpoint(request: Any) -> Any:
        try:
            given = json.loads(await request.body())
        except (ValueError, RecursionError):
            return _json({"error": "the request is not JSON."}, 400)
        if not isinstance(given, dict):
            return _json({"error": "the request must be a JSON object."}, 400)
        return _json(await run_in_threadpool(function, given))

    return endpoint


def _text(given: dict[str, Any], name: str, empty: bool = False) -> str:
    value = given.get(name)
    if not isinstance(value, str) or (not value and not empty):
        raise ValueError(f"{name} is missing; expected a string.")
    return value


def _truth(given: dict[str, Any], name: str) -> bool:
    value = given.get(name)
    if not isinstance(value, bool):
        raise ValueError(f"{name} is missing; expected true or false.")
    return value


def _duration(given: dict[str, Any]) -> float | None:
    value = given.get("duration")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError("duration must be a number of seconds or null.")
    return float(value)


def _history(session: Session, query: Any) -> dict[str, Any]:
    numbers = {}
    for name, least, most in (("before", 1, 2**62), ("limit", 1, MOST_HISTORY)):
        text = query.get(name)
        if text is not None and not (text.isdecimal() and text.isascii() and len(text) < 20):
            raise ValueError(f"{name} must be a number, got {text!r:.40}.")
        numbers[name] = None if text is None else min(max(int(text), least), most)
    return session.history(numbers["before"], numbers["limit"] or 50)


# -- files -----------------------------------------------------------------------------------------


def _pages() -> dict[str, Any]:
    """Return the files of the page by name. Other files are not served."""
    found: dict[str, Any] = {}

    def collect(folder: Any, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                collect(entry, f"{prefix}{entry.name}/")
            elif any(entry.name.endswith(suffix) for suffix in TYPES):
                found[prefix + entry.name] = entry

    folder = resources.files("marginwise.label") / "page"
    if folder.is_dir():
        collect(folder, "")
    return found


def _page(pages: dict[str, Any], name: str) -> Any:
    from starlette.responses import Response

    if name not in pages:
        return _json({"error": f"there is no page {name!r:.60}."}, 404)
    kind = next(kind for suffix, kind in TYPES.items() if name.endswith(suffix))
    return Response(pages[name].read_bytes(), media_type=kind)


def _index(request: Any, address: Address, pages: dict[str, Any]) -> Any:
    """Return the page; if the URL contains the token, move it to the cookie."""
    from starlette.responses import RedirectResponse, Response

    if "token" in request.query_params:
        answer = RedirectResponse("/", 303)
        answer.set_cookie(address.cookie, address.token, httponly=True, samesite="strict", path="/")
        return answer
    if "index.html" not in pages:
        return Response(NO_PAGE, media_type=TYPES[".html"])
    return _page(pages, "index.html")


def _image(session: Session, item: str) -> Any:
    from starlette.responses import Response

    path, folder = session.image(item)
    try:
        body, kind = served(path, folder)
    except Exception:  # the file was readable at the start and has changed since
        return _json({"error": "the image can no longer be read."}, 404)
    return Response(body, media_type=kind)


# -- serving ---------------------------------------------------------------------------------------


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(24)


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open the socket of a server; raise OSError with advice if the port is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP is explicit because asyncio sets TCP_NODELAY only on such sockets.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(128)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            raise OSError(
                f"port {port} of {host} is in use by another program; choose another --port, or "
                "leave it out for any free one."
            ) from error
        raise OSError(f"cannot listen on {host} port {port}: {error}.") from error
    with opened:
        yield opened


def serve(app: App, opened: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve requests until SIGINT or SIGTERM.

    Requests that are being answered have a moment to complete. All other connections, such as those
    of pages that are still open, are closed.

    Parameters
    ----------
    app : ASGI application
        Application returned by `make_app`.
    opened : socket
        Socket returned by `listening`.
    on_ready : callable
        Called when the server is ready.
    """
    need_starlette()
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )

    class Ready(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            on_ready()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Requests that are cut off are expected here, and uvicorn would log each traceback.
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            asyncio.get_running_loop().call_later(GRACE, self._disconnect)
            await super().shutdown(sockets)

        def _disconnect(self) -> None:
            """Close all connections, so that no request waits for the rest of its body."""
            for connection in list(self.server_state.connections):
                connection.transport.abort()

    Ready(config).run(sockets=[opened])


async def fetch(app: App, address: Address, path: str) -> tuple[int, bytes]:
    """Return the status and body of the response to a GET request, without a socket.

    Parameters
    ----------
    app : ASGI application
        Application returned by `make_app`.
    address : Address
        Address of the application.
    path : str
        Path and query.
    """
    where, _, query = path.partition("?")
    headers = {"host": f"127.0.0.1:{address.port}", "authorization": f"Bearer {address.token}"}
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": where,
        "raw_path": where.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", address.port),
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return int(sent[0]["status"]), body
