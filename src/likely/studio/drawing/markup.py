"""HTML and SVG whose texts cannot become markup: elements are made by `tag`, which escapes all that is not `Markup`."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Markup(str):
    """Text that is markup already. Only this module makes it."""

    __slots__ = ()


def tag(element: str, *children: Any, **attributes: Any) -> Markup:
    """An element with children, escaped unless they are markup, and attributes, left out where they are None or False.

    An underscore at the end of an attribute's name is for Python's keywords, others are written as hyphens.

    Examples
    --------
    >>> tag("p", "1 < 2", tag("br"), class_="note", hidden=True)
    '<p class="note" hidden>1 &lt; 2<br></p>'
    >>> tag("td", '"><img onerror=x>', title='"><img onerror=x>')
    '<td title="&quot;&gt;&lt;img onerror=x&gt;">&quot;&gt;&lt;img onerror=x&gt;</td>'
    """
    words = [element]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        word = name.rstrip("_").replace("_", "-")
        words.append(word if value is True else f'{word}="{html.escape(str(value))}"')
    opening = Markup(f"<{' '.join(words)}>")
    return opening if element in _VOID else Markup(f"{opening}{joined(children)}</{element}>")


def joined(parts: Iterable[Any]) -> Markup:
    """Parts one after the other, lists within them as well; None is nothing."""
    texts = []
    for part in parts:
        if part is None or part is False:
            continue
        if isinstance(part, Markup):
            texts.append(str(part))
        elif isinstance(part, list | tuple):
            texts.append(joined(part))
        else:
            texts.append(html.escape(str(part)))
    return Markup("".join(texts))


def document(head: Iterable[Any], body: Iterable[Any]) -> str:
    """A whole page."""
    return "<!doctype html>" + tag("html", tag("head", *head), tag("body", *body), lang="en")
