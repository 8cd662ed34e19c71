"""Who may speak to the studio: a guard before every route.

Any page that a browser shows can send requests to this machine, so being on it is no proof of anything. What is asked
for is like Jupyter's: a name of this machine in `Host` (or a page elsewhere could rebind its own name to it), a cookie
that only the printed token gives, and for changes an `Origin` that is the studio itself. Bodies are counted as they
come. Answers may load nothing from elsewhere and run no script but the studio's own file.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response

from likely.studio.drawing.markup import document, tag
from likely.studio.requests import BadRequest

MAX_BODY = 64 << 10  # bytes: the largest form, two scenarios of a thousand columns, is below it
MAX_MODEL = 256 << 20  # bytes: of a model's file that is loaded, the one request that is no form
LOAD = "/models/load"
MAX_ADDRESS = 32 << 10
_METHODS = ("GET", "HEAD", "POST")
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send a form's Origin as null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """What proves that a request is the user's.

    Parameters
    ----------
    hosts : names, with their port, by which the studio may be called.
    token : is in the address that is printed.
    session : what the cookie holds, once the token was shown.
    """

    hosts: tuple[str, ...]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def cookie(self) -> str:
        """Its name, another for each port: cookies do not tell ports apart."""
        return f"likely-studio-{self.hosts[0].rpartition(':')[2]}"


class Guard:
    """The application behind it gets only what passes."""

    def __init__(self, app: Any, access: Access):
        self.app, self.access = app, access

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no WebSocket is served
            await Response(status_code=403)(scope, receive, send)
            return

        begun = False

        async def guarded(message: Any) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._refusal(scope) or self._entrance(scope)
        if answer is not None:
            await answer(scope, receive, guarded)
            return
        try:
            await self.app(scope, _counted(receive, _most(scope)), guarded)
        except asyncio.CancelledError:  # Ctrl-C in the terminal, while somebody waits for an answer
            if not begun:
                await _page(503, "The studio has ended.")(scope, receive, guarded)

    def _refusal(self, scope: Any) -> Response | None:
        """Why a request is refused, whoever sends it."""
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1 or headers["host"].lower() not in self.access.hosts:
            return _page(421, "The studio is not called so: use the address that it printed.")
        if scope["method"] not in _METHODS:
            return _page(405, "The studio knows no such request.")
        if len(scope["query_string"]) + len(scope.get("raw_path") or b"") > MAX_ADDRESS:
            return _page(414, "This address is too long.")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            return _page(400, "The length of the request is no number.")
        if int(length) > _most(scope):
            return _page(413, "This is more than the studio takes.")
        # A browser says where a form was sent from; one that says nothing is no browser.
        if scope["method"] == "POST" and headers.getlist("origin") != [f"http://{headers['host'].lower()}"]:
            return _page(403, "Changes are taken from the studio's own pages only.")
        return None

    def _entrance(self, scope: Any) -> Response | None:
        """What those get who have not shown the token: the cookie if they show it now, else nothing."""
        if scope["path"].startswith("/static/"):  # the same for everybody, and nothing of the user's
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if scope["path"] == "/" and scope["method"] == "GET" and len(given) == 1 and _same(given[0], self.access.token):
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(self.access.cookie, self.access.session, httponly=True, samesite="strict", path="/")
            return answer
        if any(_same(value, self.access.session) for value in _cookies(scope, self.access.cookie)):
            return None
        return _page(401, "Open the address that the terminal shows: it ends in the token that lets you in.")


def _most(scope: Any) -> int:
    """How many bytes a request may bring."""
    return MAX_MODEL if scope["method"] == "POST" and scope["path"] == LOAD else MAX_BODY


def _counted(receive: Any, most: int) -> Any:
    """The same, but a body that goes on beyond the limit, whatever its head said, is refused."""
    seen = 0

    async def counting() -> Any:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise BadRequest("this is more than the studio takes.", 413)
        return message

    return counting


def _cookies(scope: Any, name: str) -> Iterable[str]:
    for text in Headers(scope=scope).getlist("cookie"):
        try:
            found = SimpleCookie(text).get(name)
        except CookieError:
            continue
        if found is not None:
            yield found.value


def _same(given: str, secret: str) -> bool:
    """Compared in a time that does not tell how much of it is right."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())


def _page(status: int, reason: str) -> Response:
    head = [tag("meta", charset="utf-8"), tag("title", "likely studio")]
    links = [("stylesheet", "/static/studio.css"), ("icon", "/static/icon.svg")]
    look = [tag("link", rel=what, href=address) for what, address in links]
    text = document([*head, *look], [tag("main", tag("h1", "likely studio"), tag("p", reason), class_="alone")])
    return Response(text, status, media_type="text/html")
