"""What a user may say about a file of rows where looking at it is not enough."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from likely.datasets.errors import DataError

DayOrMonth = Literal["day", "month"]


@dataclass(frozen=True)
class TableOptions:
    """How a table is read; each None or empty one is found by looking at the file.

    Parameters
    ----------
    decimal : "." or ",", the sign before the fraction of a number.
    missing : cells that are unobserved beside the usual ones: words, or numbers such as -999; in one string commas
        stand between them.
    header : whether the first line holds names.
    separator : the character between cells.
    encoding : of the text, by Python's names, such as "cp1252".
    drop : names of columns to leave out; in one string commas stand between them.
    dates : "day" or "month", which of them comes first in dates such as 03/04/2020.
    """

    decimal: str | None = None
    missing: Sequence[str | float] | str | float = ()
    header: bool | None = None
    separator: str | None = None
    encoding: str | None = None
    drop: Sequence[str] | str = ()
    dates: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise DataError(f"decimal must be '.' or ',', got {self.decimal!r}.")
        if self.dates not in (None, "day", "month"):
            raise DataError(f"dates must be 'day' or 'month', whichever comes first in them, got {self.dates!r}.")
        separator = "\t" if self.separator == "\\t" else self.separator
        if separator is not None and (len(separator) != 1 or ord(separator) > 127 or separator in '"\r\n'):
            raise DataError(f"separator must be one ASCII character, such as ';', got {separator!r}.")
        if separator is not None and separator == self.decimal == ".":
            raise DataError("separator and decimal are both '.': a number would end at its decimal point.")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
                "".encode(self.encoding)  # Some codecs, such as base64, are of bytes and not of text.
            except (LookupError, TypeError):
                raise DataError(
                    f"encoding {self.encoding!r} is not known: utf-8, utf-16, cp1252 and latin-1 are."
                ) from None
        object.__setattr__(self, "separator", separator)
        object.__setattr__(self, "missing", tuple(_listed(self.missing)))
        object.__setattr__(self, "drop", tuple(_listed(self.drop)))

    @property
    def missing_words(self) -> tuple[str, ...]:
        """The markers as a file may spell them."""
        return tuple(str(marker).strip() for marker in self._markers)

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        """Those of the markers that are numbers: -999 is then unobserved however it is written, as -999.0 too."""
        numbers = []
        for marker in self._markers:
            try:
                numbers.append(float(marker))
            except ValueError:
                continue
        return tuple(numbers)

    @property
    def _markers(self) -> tuple[str | float, ...]:
        return self.missing  # type: ignore[return-value]


def _listed(given: Sequence[str | float] | str | float) -> list[str | float]:
    """The items of a list, of a text with commas between them, or one number."""
    if isinstance(given, str):
        return [item.strip() for item in given.split(",") if item.strip()]
    return [given] if isinstance(given, int | float) else list(given)
