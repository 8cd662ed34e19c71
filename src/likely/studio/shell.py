"""What all pages share: the frame around them, the states of a view, and work that is done once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse, Response

from likely.studio.drawing.markup import Markup, document, joined, tag
from likely.studio.jobs import Jobs
from likely.studio.workspace import Workspace

VIEWS = {
    "table": "Table",
    "compare": "Compare",
    "what-if": "What-if",
    "samples": "Samples",
    "map": "Map",
    "structure": "Structure",
}
_REMEMBERED = 64  # answers that are kept, since the same is asked again and again


class Studio:
    """All that a view needs: the workspace, its jobs, and a memory of what was computed."""

    def __init__(self, space: Workspace, jobs: Jobs):
        self.space, self.jobs = space, jobs
        self._lock = threading.Lock()
        self._locks: OrderedDict[Any, threading.Lock] = OrderedDict()
        self._found: dict[Any, Any] = {}

    def once(self, key: Any, work: Callable[[], Any]) -> Any:
        """What `work` gives, computed once for a key, by one thread while others that want the same wait."""
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
            self._locks.move_to_end(key)
            while len(self._locks) > _REMEMBERED:
                old, _ = self._locks.popitem(last=False)
                self._found.pop(old, None)
        with lock:
            if key not in self._found:
                self._found[key] = work()
            return self._found[key]

    def usable(self) -> tuple[Any, str]:
        """The model in use and what to know it by; None where there is none that fits the table."""
        current = self.space.current()
        if current is None or self.space.mismatch():
            return None, ""
        return self.space.load(current), current.number


def page(studio: Studio, active: str, *content: Any) -> Response:
    """A view in the studio's frame."""
    space = studio.space
    current = space.current()
    links = [
        tag("a", label, href=f"/{name}", aria_current="page" if name == active else None)
        for name, label in VIEWS.items()
    ]
    used = tag("span", f"model: {current.name}" if current else "no model yet", class_="chip")
    head = tag("header", tag("strong", "likely"), tag("span", space.title, class_="title"), used, tag("nav", *links))
    return whole_page(f"{VIEWS.get(active, 'studio')} · {space.title}", head, tag("main", *content))


def whole_page(title: str, *body: Any, status: int = 200) -> Response:
    """A document with the studio's style and script."""
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="/static/icon.svg"),
        tag("link", rel="stylesheet", href="/static/studio.css"),
        tag("script", src="/static/studio.js", defer=True),
    ]
    return HTMLResponse(document(head, body), status)


def fragment(*content: Any) -> Response:
    """A part of a page."""
    return HTMLResponse(str(joined(content)))


def later(address: str, words: str) -> Markup:
    """A place that the script fills from an address; until then it says what is awaited."""
    return tag(
        "div", tag("p", tag("span", class_="ring"), words, class_="state"), data_load=address, aria_live="polite"
    )


def awaited(words: str) -> Markup:
    """Where a live form says what it found, or why not; until then what is awaited."""
    waiting = tag("p", tag("span", class_="ring"), words, class_="state")
    return tag("div", waiting, id="evidence", aria_live="polite")


def state(title: str, text: str, *actions: Any) -> Markup:
    """What a view says when there is nothing to show: why, and what to do."""
    return tag("div", tag("h2", title), tag("p", text), *actions, class_="state")


def no_model(studio: Studio) -> Markup | None:
    """The state of a view that needs a model and has none; None where there is one."""
    to_compare = tag("a", "Compare models", href="/compare", class_="button")
    mismatch = studio.space.mismatch()
    if mismatch:
        return state("The model does not fit the table", mismatch, to_compare)
    if studio.space.current() is None:
        return state("No model yet", "Compare a few models, and choose one to look through.", to_compare)
    return None


def python(lines: Iterable[str]) -> Markup:
    """The same in Python, behind a button."""
    return tag("details", tag("summary", "Python"), tag("div", code(lines), id="python"))


def code(lines: Iterable[str]) -> Markup:
    """Lines of Python."""
    return tag("pre", tag("code", "\n".join(lines)))


def loading_lines(studio: Studio) -> list[str]:
    """Python that loads the data and the model in use."""
    space = studio.space
    lines = ["import likely"]
    if space.data is not None:
        options = "".join(f", {key}={value!r}" for key, value in space.reading().items())
        name = Path(space.data).name if Path(space.data).is_file() else space.data
        lines.append(f"data = likely.datasets.load({name!r}{options})")
    current = space.current()
    if current is not None:
        lines.append(f"model = likely.load({shown(studio, current.path)!r})")
    return lines


def row_lines(model: Any, given: dict[str, Any]) -> list[str]:
    """Python that makes a row with some cells, the others unobserved."""
    if model.schema_.frame is None:
        row = "row = [[given.get(name, float('nan')) for name in model.schema_.names]]"
        return [f"given = {given!r}", row]
    row = "row = polars.DataFrame({name: [given.get(name)] for name in model.schema_.names})"
    return ["import polars", f"given = {given!r}", row]


def rows_line(studio: Studio) -> str:
    """Python that reads all rows of a file, or takes the test rows of a data set."""
    path = Path(studio.space.data or "")
    return f"rows = likely.datasets.read({path.name!r})" if studio.space.is_file else "rows = data.test"


def shown(studio: Studio, path: Path) -> str:
    """A path below the folder, as seen from there; another by its name."""
    return str(path.relative_to(studio.space.folder)) if path.is_relative_to(studio.space.folder) else path.name
