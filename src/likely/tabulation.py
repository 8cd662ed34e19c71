"""Small tables of results: as HTML for a notebook, and as a data frame of the user's library."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

_LIBRARIES = ("polars", "pandas", "pyarrow")


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of texts as HTML; whatever they hold is escaped.

    Examples
    --------
    >>> table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f"<table>{head}<tbody>{body}</tbody></table>"


def frame_of(columns: dict[str, Any], backend: str) -> Any:
    """A data frame of a library's own kind."""
    if backend not in _LIBRARIES:
        raise ValueError(f"`backend` must be one of {', '.join(map(repr, _LIBRARIES))}, got {backend!r}.")
    import narwhals as nw

    return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]
