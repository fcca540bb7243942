"""Access control: token, Host and Origin headers, request sizes, and response headers.

Any page that is open in the same browser can send requests to a server on the loopback address,
and any user of the machine can connect to it. Every request must therefore name the server in its
Host header (which prevents DNS rebinding), must come from the server's own page if the browser
sends the origin, and must contain the token. The token is printed once and stored in a cookie that
scripts cannot read.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BODY = 64 * 1024
OPEN = ("/health",)  # paths that do not require a token
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}


class RefusedError(Exception):
    """Exception for a rejected request.

    Parameters
    ----------
    status : int
        The HTTP status.
    message : str
        The reason.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Address:
    """Address of a server, and the token that it requires.

    Parameters
    ----------
    host : str
        The host name or address to which the server is bound.
    port : int
        The port.
    token : str
        The token.
    """

    host: str
    port: int
    token: str = field(repr=False)

    @property
    def cookie(self) -> str:
        """Name of the cookie, which differs between servers on one machine."""
        return f"marginwise_{self.port}"

    @property
    def url(self) -> str:
        """URL to open in a browser."""
        name = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host
        shown = f"[{name}]" if ":" in name else name
        return f"http://{shown}:{self.port}/?token={quote(self.token, safe='')}"

    def serves(self, host: str) -> bool:
        """Return whether a Host header names this server.

        A server that listens on all addresses also accepts each of these addresses and the name of
        the machine. Addresses cannot be rebound. Other names can, and are rejected.
        """
        if self.port == 80 and not host.rpartition("]")[2].partition(":")[1]:
            host += ":80"  # browsers omit the default port
        name, _, port = host.rpartition(":")
        if not name or port != str(self.port):
            return False
        name = name.strip("[]").lower()
        if name in (self.host.lower(), "localhost", "127.0.0.1", "::1"):
            return True
        if self.host not in ("0.0.0.0", "::", ""):
            return False
        return _is_address(name) or name == socket.gethostname().lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """ASGI middleware that rejects invalid requests and adds headers to all responses.

    Parameters
    ----------
    app : ASGI application
        Application that handles valid requests.
    address : Address
        Address of the server.
    refuse : callable
        Returns the ASGI response for a `RefusedError`.
    bodies : dict of str to int, default=None
        Maximum size of request bodies, in bytes, by path. The maximum for other paths is 64 kB.
    """

    def __init__(
        self,
        app: App,
        address: Address,
        refuse: Callable[[RefusedError], App],
        bodies: Mapping[str, int] | None = None,
    ) -> None:
        self._app, self._address, self._refuse = app, address, refuse
        self._bodies = bodies or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        try:
            self._check(scope)
            most = self._bodies.get(scope["path"], MOST_BODY)
            receive = await _whole_body(scope, receive, most)
        except RefusedError as denied:
            await self._refuse(denied)(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope)
        if not self._address.serves(headers.one("host")):
            raise RefusedError(
                421, "the request names another host; use the address that was printed."
            )
        if scope["path"] not in OPEN and not self._knows_token(scope, headers):
            raise RefusedError(
                403, "the token is missing or wrong; open the address that the command printed."
            )
        if scope["method"] not in ("GET", "HEAD"):
            self._check_origin(headers)

    def _knows_token(self, scope: Scope, headers: Headers) -> bool:
        """Return whether the cookie, the Authorization header or the URL contains the token."""
        given = [headers.cookie(self._address.cookie), headers.authorization()]
        if scope["path"] == "/" and scope["method"] == "GET":
            given.append(query_of(scope).get("token", ""))
        token = self._address.token.encode()
        return any(hmac.compare_digest(one.encode(), token) for one in given)

    def _check_origin(self, headers: Headers) -> None:
        """Raise if a request that modifies state comes from another page or from a form."""
        origin, site = headers.one("origin"), headers.one("sec-fetch-site")
        scheme, _, host = origin.partition("://")
        if origin and (scheme != "http" or not self._address.serves(host)):
            raise RefusedError(403, "the request comes from another origin.")
        if site and site not in ("same-origin", "none"):
            raise RefusedError(403, "the request comes from another site.")
        kind = headers.one("content-type").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RefusedError(415, "the request must be JSON (Content-Type: application/json).")


class Headers:
    """Headers of a request.

    Parameters
    ----------
    scope : dict
        The ASGI scope.
    """

    def __init__(self, scope: Scope) -> None:
        self._pairs = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"]]

    def one(self, name: str) -> str:
        """Return the value of a header; empty if it is missing or was sent more than once."""
        found = [value for key, value in self._pairs if key.lower() == name]
        return found[0].strip() if len(found) == 1 else ""

    def cookie(self, name: str) -> str:
        """Return the value of a cookie; empty if it is missing."""
        for key, value in self._pairs:
            if key.lower() == "cookie":
                try:
                    found = SimpleCookie(value).get(name)
                except CookieError:
                    continue
                if found is not None:
                    return found.value
        return ""

    def authorization(self) -> str:
        """Return the token of a Bearer header, or the password of a Basic one."""
        scheme, _, value = self.one("authorization").partition(" ")
        if scheme.lower() == "bearer":
            return value.strip()
        if scheme.lower() == "basic":
            try:
                return base64.b64decode(value, validate=True).decode().partition(":")[2]
            except (binascii.Error, ValueError):
                return ""
        return ""


def query_of(scope: Scope) -> dict[str, str]:
    """Return the query parameters of a request."""
    text = scope.get("query_string", b"").decode("latin-1")
    try:
        return dict(parse_qsl(text, max_num_fields=20))
    except ValueError:
        return {}


async def _whole_body(scope: Scope, receive: Receive, most: int) -> Receive:
    """Read the body up to a maximum size; return a function that passes it to the application."""
    declared = Headers(scope).one("content-length")
    if declared and (not declared.isdigit() or int(declared) > most):
        raise RefusedError(413, f"the request has more than {most:,} bytes.")
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise RefusedError(413, f"the request has more than {most:,} bytes.")
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
