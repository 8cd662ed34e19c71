"""The application: all routes behind the guard, and how it is served."""

from __future__ import annotations

import contextlib
import logging
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from likely.cli.text import is_text_model
from likely.studio import compare_view, map_view, samples_view, structure_view, table_view, what_if_view
from likely.studio.drawing.markup import tag
from likely.studio.jobs import Jobs
from likely.studio.security import Access, Guard
from likely.studio.shell import Studio, state, whole_page
from likely.studio.workspace import Workspace

STATIC = Path(__file__).parent / "static"


def create_app(space: Workspace, access: Access, n_at_once: int = 1) -> Any:
    """The studio of a workspace as an ASGI application."""
    studio = Studio(space, Jobs(space, n_at_once))

    def first(request: Request) -> Response:
        # Without data there is a model alone: what people ask of it first.
        alone = "/map" if space.given and is_text_model(space.model()) else "/what-if"
        return RedirectResponse(alone if space.data is None else "/table", 303)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(studio.jobs.close)

    routes: list[Any] = [Route("/", first), Mount("/static", StaticFiles(directory=STATIC))]
    for view in (table_view, compare_view, what_if_view, samples_view, map_view, structure_view):
        routes += view.routes(studio)
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    app.state.studio = studio
    return Guard(app, access)


def serve(
    space: Workspace,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    n_at_once: int = 1,
    browser: bool = True,
    say: Callable[[str], None],
) -> None:
    """Serve the studio until Ctrl-C.

    Parameters
    ----------
    space : what it shows.
    host : the address that it listens on; another than this machine's own needs the user's word.
    port : 0 takes a free one.
    n_at_once : comparisons that run at a time.
    browser : open one.
    say : gets the address to be printed.
    """
    import uvicorn

    place = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    port = place.getsockname()[1]
    names = ["127.0.0.1", "localhost", "[::1]", *([] if host in ("127.0.0.1", "0.0.0.0", "::") else [host])]
    if host in ("0.0.0.0", "::"):
        names += [socket.gethostname().lower()]
    access = Access(tuple(f"{name}:{port}" for name in names))
    address = f"http://{'127.0.0.1' if host in ('0.0.0.0', '::') else host}:{port}/?token={access.token}"
    say(address)
    config = uvicorn.Config(
        create_app(space, access, n_at_once),
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        limit_concurrency=200,
        timeout_graceful_shutdown=2,
    )
    # What is cut off by Ctrl-C is said to who waits for it, and is no error.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "graceful shutdown exceeded" not in record.getMessage())
    if browser:
        webbrowser.open(address)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[place])


def _refused(request: Request, error: Exception) -> Response:
    """Something that was asked for is not there, or not allowed."""
    status, reason = getattr(error, "status_code", 400), str(getattr(error, "detail", error))
    back = tag("a", "Back to the studio", href="/", class_="button")
    return whole_page("likely studio", tag("main", state("That did not work", reason, back)), status=status)


def _failed(request: Request, error: Exception) -> Response:
    """An error of ours; the terminal has where."""
    text = f"{type(error).__name__}: {error}"
    return whole_page("likely studio", tag("main", state("Something failed", text)), status=500)
