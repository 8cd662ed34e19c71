"""The base measure of a density on a table: which of its columns are densities; the others are probabilities.

log p(x) of a row with a real cell is a density in the units of that cell, and can be made as large as one likes by a
narrow peak; of discrete cells it is a probability. Two figures can be compared only if each column is the same in both.
"""

from __future__ import annotations

from collections.abc import Sequence


class Measure(str):
    """The word for a base measure, "counting", "lebesgue" or "mixed", that also knows which columns are densities.

    It equals its word, which is what people read; two measures are equal when they agree on every column. Of an
    evidence made by hand there may be the word alone: then a "mixed" one agrees only with another such.

    Parameters
    ----------
    word : what people read: "counting", or "conditional counting (y | x)".
    names : of the columns, where they are known.
    is_density : of each of them, whether it is a density; in words where only some of its values are.

    Examples
    --------
    >>> one, other = Measure.of(["age", "smokes"], [True, False]), Measure.of(["age", "smokes"], [False, True])
    >>> one == "mixed", other == "mixed", one == other
    (True, True, False)
    >>> one.densities, one.unlike(other)
    (('age',), "column 'age' is a density in one and a probability in the other, and so is column 'smokes'")
    """

    names: tuple[str, ...]
    is_density: tuple[bool | str, ...]

    def __new__(cls, word: str, names: Sequence[str] = (), is_density: Sequence[bool | str] = ()) -> Measure:
        self = super().__new__(cls, word)
        self.names = tuple(names)
        self.is_density = tuple(each if isinstance(each, str) else bool(each) for each in is_density)
        return self

    @classmethod
    def of(cls, names: Sequence[str], is_density: Sequence[bool | str]) -> Measure:
        """The measure of columns, by whether each is a density."""
        pure = all(each is True or (not isinstance(each, str) and bool(each)) for each in is_density)
        word = "lebesgue" if pure else "mixed" if any(is_density) else "counting"
        return cls(word, names, is_density)

    def conditional(self, target: str, given: str = "x") -> Measure:
        """The measure of these columns given others: it is compared with its like only."""
        return Measure(f"conditional {self} ({target} | {given})", self.names, self.is_density)

    @property
    def densities(self) -> tuple[str, ...] | None:
        """Names of the columns that are densities; None where only the word is known."""
        if not self.names:
            return () if self._plain == "counting" else None
        return tuple(name for name, density in zip(self.names, self.is_density, strict=True) if density)

    def unlike(self, other: Measure) -> str:
        """Which columns one measure reads as a density and the other does not; empty where none is known to be."""
        if len(self.names) != len(other.names):
            return "" if str(self) != str(other) else "one does not say which of its columns are densities"
        pairs = zip(self.names, self.is_density, other.is_density, strict=True)
        odd = [(f"column {name!r}", one, another) for name, one, another in pairs if one != another]
        if not odd:
            return ""
        names = [name for name, _, _ in odd]
        more = "" if len(odd) == 1 else f", and so {'is' if len(odd) == 2 else 'are'} {_listed(names[1:])}"
        first, second = sorted(map(_in_words, odd[0][1:]))
        return f"{names[0]} is {first} in one and {second} in the other{more}"

    @property
    def _plain(self) -> str:
        """The word alone, whatever it is conditional on."""
        return self.removeprefix("conditional ").split(" ")[0]

    # str compares words, in `!=` as in `==`; the hash is the word's, so that what is equal has one hash.
    def __eq__(self, other: object) -> bool:
        if isinstance(other, Measure) and self._plain == "mixed" and self.is_density != other.is_density:
            return False  # The other words leave nothing open: all columns are densities, or none is.
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


def _in_words(is_density: bool | str) -> str:
    return is_density if isinstance(is_density, str) else "a density" if is_density else "a probability"


def _listed(columns: list[str]) -> str:
    shown = columns if len(columns) <= 3 else [*columns[:2], f"{len(columns) - 2} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
