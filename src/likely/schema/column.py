"""One column: what its values are, and so how models may read them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import Literal, get_args

Kind = Literal["binary", "categorical", "ordinal", "count", "grid", "real", "datetime"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CODED: tuple[Kind, ...] = ("binary", "categorical", "ordinal")  # kinds whose cells are codes of categories

# The resolutions of times, in microseconds, coarsest first. Sunday, 4 January 1970 does not begin a week that matters:
# a day is the coarsest grid that every calendar shares.
RESOLUTIONS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


class SchemaError(ValueError):
    """Rows that contradict their schema, or a schema that contradicts itself."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : what it is called.
    kind : "binary", "categorical" (names without order), "ordinal" (with an order), "count" (0, 1, 2, ..., Poisson
        given what a model knows), "grid" (numbers that are rounded to multiples of `step`), "real" or "datetime".
    categories : the values that the codes 0, 1, ... of a coded column stand for.
    step : distance between the values of a grid.
    support : lowest and highest value that there can be, None where nothing is known; drawn values respect it.
    offset : of a grid, by which its values are off the multiples of its step.
    spikes : values of a real column that have a probability of their own: a zero, a cap, a code such as 999.
    is_warped : a real or grid column is bent by a monotone map before it is read as Gaussian, since it is skewed,
        heavy-tailed or bounded.
    unseen : what a category that `fit` did not see is: an "error", or worth the probability that is kept in "reserve".
    resolution : of times: "day", "hour", "minute", "second", "millisecond" or "microsecond".
    decimals : digits after the point that all values of a data frame's real column have at most, and drawn ones too.
    dtype : the type in the data frame, which values get back.
    why : the reason for this reading, for people.
    """

    name: str
    kind: Kind
    categories: tuple | None = None
    _: KW_ONLY
    step: float | None = None
    offset: float = 0.0
    support: tuple[float | None, float | None] = (None, None)
    spikes: tuple[float, ...] = ()
    is_warped: bool = False
    unseen: Literal["error", "reserve"] = "error"
    resolution: str | None = None
    decimals: int | None = field(default=None, compare=False)
    dtype: str | None = None
    why: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        self._check_categories()
        if self.kind == "grid" and not (self.step is not None and self.step > 0):
            raise SchemaError(
                f"grid column {self.name!r} needs the distance of its values: Column(name, 'grid', step=1)."
            )
        if self.offset and self.kind != "grid":
            raise SchemaError(f"{self.kind} column {self.name!r} cannot have an offset: only grids do.")
        if self.kind == "datetime" and self.resolution not in RESOLUTIONS:
            known = ", ".join(RESOLUTIONS)
            raise SchemaError(f"resolution of column {self.name!r} must be one of {known}, got {self.resolution!r}.")
        if self.spikes and self.kind != "real":
            raise SchemaError(f"{self.kind} column {self.name!r} cannot have spikes: only real columns need them.")
        self._check_support()

    def _check_categories(self) -> None:
        if self.kind not in KINDS:
            raise SchemaError(f"kind of column {self.name!r} must be one of {', '.join(KINDS)}, got {self.kind!r}.")
        if self.kind in ("categorical", "ordinal") and not self.categories:
            raise SchemaError(f"{self.kind} column {self.name!r} needs its categories: Column(name, kind, categories).")
        if self.kind == "binary" and self.categories is not None and len(self.categories) != 2:
            raise SchemaError(f"binary column {self.name!r} needs two categories, got {len(self.categories)}.")
        if self.kind not in CODED and self.categories is not None:
            raise SchemaError(f"{self.kind} column {self.name!r} cannot have categories.")
        if self.categories is not None and len(set(self.categories)) != len(self.categories):
            raise SchemaError(f"the categories of column {self.name!r} are not distinct: {self.categories}.")

    def _check_support(self) -> None:
        ends = self.support
        pair = isinstance(ends, tuple | list) and len(ends) == 2
        if not (pair and all(end is None or isinstance(end, Real) for end in ends)):
            raise SchemaError(f"the support of column {self.name!r} must be two numbers or None, got {ends!r}.")
        low, high = ends
        if low is not None and high is not None and not low < high:
            raise SchemaError(f"the support of column {self.name!r} must be (low, high) with low < high, got {ends}.")

    @property
    def n_categories(self) -> int:
        """Number of categories of a categorical or ordinal column; 1 for the others, which have one statistic."""
        return len(self.categories) if self.kind in ("categorical", "ordinal") and self.categories else 1

    @property
    def is_plain(self) -> bool:
        """Whether the column is one cell of its own kind, with nothing to be looked up or bent."""
        if self.kind in ("categorical", "ordinal"):
            return self.unseen == "error"
        return self.kind in ("binary", "count") or (self.kind == "real" and not self.spikes and not self.is_warped)

    @property
    def density(self) -> bool | str:
        """Whether log p of it is a density: of a real column; in words where some values have probabilities."""
        if self.kind != "real":
            return False
        return f"a density beside {_values(self.spikes)}" if self.spikes else True

    @property
    def reading(self) -> str:
        """How the column is read, in a few words."""
        if self.kind in ("categorical", "ordinal"):
            n = len(self.categories or ())
            return f"{self.kind}, {n} value{'s' if n != 1 else ''}"
        if self.kind == "binary" and self.categories is not None:
            return f"binary: {self.categories[0]!r} or {self.categories[1]!r}"
        if self.kind == "grid":
            off = f", {self.offset:g} off" if self.offset else ""
            return f"grid of {self.step:g}{off}{self._support_in_words}"
        if self.kind == "datetime":
            return f"datetime by the {self.resolution}"
        if self.kind == "real":
            bent = ", bent towards a Gaussian" if self.is_warped else ""
            spikes = f", with spikes at {_values(self.spikes)}" if self.spikes else ""
            return f"real{self._support_in_words}{bent}{spikes}"
        return self.kind

    @property
    def _support_in_words(self) -> str:
        low, high = self.support
        if high is None:
            return "" if low is None else f" from {low:g} on"
        return f" up to {high:g}" if low is None else f" from {low:g} to {high:g}"


@dataclass(frozen=True)
class LeftOut:
    """A column that no model is to learn from: an identifier, free text, a constant, nothing but holes.

    Parameters
    ----------
    name : what it is called.
    role : "identifier", "text", "constant", "empty" or "dropped" (by the user).
    why : the reason, for people.
    value : of a constant, which drawn rows have too.
    place : where it stands in the data frame.
    """

    name: str
    role: Literal["identifier", "text", "constant", "empty", "dropped"]
    why: str = field(default="", compare=False)
    value: bool | int | float | str | None = None
    place: int = 0


def _values(values: tuple[float, ...]) -> str:
    words = [f"{value:g}" for value in values]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
