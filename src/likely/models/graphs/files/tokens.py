"""Text as tokens with a place to stand: what is expected next, and the line where it was not found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from likely.models.graphs.files.described import Malformed

_COMMENT = re.compile(r'"[^"\n]*"|/\*.*?\*/|//[^\n]*', re.DOTALL)


class Tokens:
    """The tokens of a text, read one after the other.

    Lines are only found out when something is wrong, by going over the text once more.
    """

    def __init__(self, path: str, text: str, pattern: re.Pattern[str]):
        self.path, self.text, self.pattern = path, text, pattern
        self.all: list[str] = pattern.findall(text)
        self.all.append("")  # the end, so that there always is a next one
        self.at = 0

    @property
    def next(self) -> str:
        """The token to be read next; empty at the end."""
        return self.all[self.at]

    def take(self) -> str:
        """The next token, which is passed."""
        token = self.all[self.at]
        if not token:
            self.fail("more")
        self.at += 1
        return token

    def expect(self, *tokens: str) -> str:
        """Pass the next token, which must be one of these."""
        token = self.all[self.at]
        if token not in tokens:
            self.fail(" or ".join(map(repr, tokens)))
        self.at += 1
        return token

    def name(self) -> str:
        """Pass a name, without its quotes."""
        token = self.take()
        return token[1:-1] if token[0] == '"' else token

    def until(self, end: str, what: str) -> list[str]:
        """All tokens before the next `end`, which is passed too."""
        try:
            place = self.all.index(end, self.at)
        except ValueError:
            self.fail(f"{end!r} after {what}", len(self.all) - 1)
        found = self.all[self.at : place]
        self.at = place + 1
        return found

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        """Refuse the file at a token, the next one unless another is given."""
        place = self.at if at is None else at
        found = f", found {self.all[place][:40]!r}" if self.all[place] else ", and the file ends"
        raise Malformed(f"{self.path}, line {self.line(place)}: expected {expected}{found}.")

    def line(self, place: int) -> int:
        """The line of a token."""
        matches = enumerate(self.pattern.finditer(self.text))
        start = next((match.start() for number, match in matches if number == place), len(self.text))
        return self.text.count("\n", 0, start) + 1


def without_comments(text: str) -> str:
    """The text with // and /* */ comments taken out, lines kept; what is in quotes stays."""
    if "//" not in text and "/*" not in text:
        return text
    return _COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else "\n" * m[0].count("\n") + " ", text)


def numbers(tokens: Tokens, found: Sequence[str], start: int) -> list[float]:
    """Tokens as numbers; `start` is the place of the first, for the line of one that is no number."""
    try:
        return [float(token) for token in found]
    except ValueError:
        for i, token in enumerate(found):
            try:
                float(token)
            except ValueError:
                tokens.fail("a number", start + i)
        raise
