"""Evidence: log p(x) of each row, with what is known about it.

A value is exact, a lower bound, an upper bound or an estimate; it has a Monte Carlo error; and it is a density with
respect to some base measure. Two evidences subtract only when they speak of the same rows on the same measure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.contract.fingerprint import Fingerprint
from likely.schema import Measure, blocks

SIGNS = {"exact": "=", "lower": "≥", "upper": "≤", "estimate": "≈", "unavailable": ""}
KINDS = tuple(SIGNS)
_CELLS_AT_ONCE = 1 << 20  # of replicates whose deviations are taken together, which makes copies of them


class IncomparableError(ValueError):
    """Two evidences that do not speak of the same thing."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """log p(x) of each row in nats, typed, with limits and error.

    Parameters
    ----------
    values : (n_rows,) the best single figure for log p(x); NaN where there is none.
    lower, upper : (n_rows,) limits of the true value, ±inf where unknown. Limits that come from Monte Carlo hold in
        expectation; `stderr` says how far they may be off, and `limits` are widened by it.
    replicates : (n_rows, n_replicates) independent, equally good versions of `values` whose average has the error of
        `values`; they carry the Monte Carlo error *and* its correlation between rows, which share their noise.
        None when there is no Monte Carlo error.
    method : what produced it, for people.
    measure : "counting", "lebesgue" or "mixed", and which columns are densities.
    dimensions : (n_rows,) number of observed cells.
    fingerprint : identifies the rows by their values.
    reason : why there is no value, when it is unavailable.

    Examples
    --------
    >>> a = Evidence.exact([-1.0, -2.0, -1.5], method="by hand")
    >>> b = Evidence.lower_bound([-2.0, -2.5, -2.5], method="by hand")
    >>> a.kind, b.kind, a.mean
    ('exact', 'lower', -1.5)
    >>> print(a - b)
    0.833 ± 0.167 (an upper bound on the difference)
    """

    values: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    replicates: np.ndarray | None
    method: str
    measure: Measure | str
    dimensions: np.ndarray
    fingerprint: Fingerprint | str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.measure, Measure):  # A word says of itself what it can.
            object.__setattr__(self, "measure", Measure(self.measure))

    @classmethod
    def exact(cls, values: Any, **about: Any) -> Evidence:
        """Values that are log p(x) up to rounding."""
        values = np.asarray(values, dtype=np.float64)
        return cls._build(values, values, values, None, **about)

    @classmethod
    def lower_bound(cls, values: Any, replicates: Any = None, **about: Any) -> Evidence:
        """Values that are at most log p(x), in expectation when they have replicates."""
        values = np.asarray(values, dtype=np.float64)
        return cls._build(values, values, np.full_like(values, np.inf), replicates, **about)

    @classmethod
    def upper_bound(cls, values: Any, replicates: Any = None, **about: Any) -> Evidence:
        """Values that are at least log p(x), in expectation when they have replicates."""
        values = np.asarray(values, dtype=np.float64)
        return cls._build(values, np.full_like(values, -np.inf), values, replicates, **about)

    @classmethod
    def estimate(
        cls, values: Any, lower: Any = -np.inf, upper: Any = np.inf, replicates: Any = None, **about: Any
    ) -> Evidence:
        """Values between two limits, either of which may be unknown."""
        values = np.asarray(values, dtype=np.float64)
        lower, upper = (np.broadcast_to(np.asarray(limit, dtype=np.float64), values.shape) for limit in (lower, upper))
        return cls._build(values, lower, upper, replicates, **about)

    @classmethod
    def unavailable(cls, n_rows: int, reason: str, **about: Any) -> Evidence:
        """No likelihood exists; `reason` says why and what to ask instead."""
        nothing = np.full(n_rows, np.nan)
        return cls._build(
            nothing,
            np.full(n_rows, -np.inf),
            np.full(n_rows, np.inf),
            None,
            reason=reason,
            **{"method": "none"} | about,
        )

    @classmethod
    def _build(
        cls,
        values: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        replicates: Any,
        *,
        method: str,
        measure: Measure | str = "counting",
        dimensions: Any = 1,
        fingerprint: Fingerprint | str = "",
        reason: str = "",
    ) -> Evidence:
        if values.ndim != 1:
            raise ValueError(f"an evidence has one value per row, got an array of shape {values.shape}.")
        if replicates is not None:
            replicates = np.asarray(replicates, dtype=np.float64)
            if replicates.ndim != 2 or len(replicates) != len(values) or replicates.shape[1] < 2:
                raise ValueError(
                    f"replicates must be ({len(values)} rows, at least 2 replicates), got shape {replicates.shape}."
                )
        dimensions = np.broadcast_to(np.asarray(dimensions, dtype=np.int64), values.shape)
        return cls(values, lower, upper, replicates, method, measure, dimensions, fingerprint, reason)

    def shifted(self, by: np.ndarray) -> Evidence:
        """The same with so much (n_rows,) added to every row: in other units, or of a larger event."""
        moved = {name: getattr(self, name) + by for name in ("values", "lower", "upper")}
        replicates = None if self.replicates is None else self.replicates + by[:, None]
        return replace(self, **moved, replicates=replicates)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Evidence:
        """The evidence of some of the rows (a slice, mask or index array)."""
        index = np.atleast_1d(np.arange(len(self))[rows])
        part = {name: getattr(self, name)[index] for name in ("values", "lower", "upper", "dimensions")}
        replicates = None if self.replicates is None else self.replicates[index]
        name = self.fingerprint
        # Of a name that was given by hand it is only known that other rows have another.
        name = name[index] if isinstance(name, Fingerprint) else f"{name}[{_digest(index)}]"
        return replace(self, **part, replicates=replicates, fingerprint=name)

    @property
    def kind(self) -> str:
        """One of "exact", "lower", "upper", "estimate", "unavailable"."""
        if np.isnan(self.values).any():
            return "unavailable"
        at_lower, at_upper = np.array_equal(self.lower, self.values), np.array_equal(self.upper, self.values)
        if at_lower and at_upper:  # limits that meet by chance make nothing exact
            return "exact" if self.replicates is None else "estimate"
        if at_lower and np.isposinf(self.upper).all():
            return "lower"
        if at_upper and np.isneginf(self.lower).all():
            return "upper"
        return "estimate"

    @property
    def stderr(self) -> np.ndarray:
        """Monte Carlo standard error of each row's value (0 where there is no Monte Carlo)."""
        if self.replicates is None:
            return np.zeros(len(self))
        out = np.empty(len(self))
        for start, some in blocks(self.replicates, _CELLS_AT_ONCE):
            out[start : start + len(some)] = some.std(axis=1, ddof=1) / math.sqrt(some.shape[1])
        return out

    @property
    def mean(self) -> float:
        """Mean log p(x), nats per row."""
        return float(self.values.mean()) if len(self) else math.nan

    @property
    def monte_carlo_stderr(self) -> float:
        """Standard error of the mean that comes from Monte Carlo, given these rows."""
        if self.replicates is None:
            return 0.0
        return float(self.replicates.mean(axis=0).std(ddof=1) / math.sqrt(self.replicates.shape[1]))

    @property
    def mean_stderr(self) -> float:
        """Standard error of the mean as a statement about the population: rows and Monte Carlo together."""
        return math.hypot(_stderr_of_rows(self.values), self.monte_carlo_stderr)

    def limits(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """(n_rows,) limits that each hold log p(x) of a row at this level: `lower` and `upper`, widened by `stderr`."""
        return _widen(self.lower, self.upper, self.stderr, level)

    def mean_limits(self, level: float = 0.95) -> tuple[float, float]:
        """Limits of the mean over *these* rows: the mean limits, widened by `monte_carlo_stderr`."""
        return _widen(float(self.lower.mean()), float(self.upper.mean()), self.monte_carlo_stderr, level)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Interval for the population's mean log p(x): the mean limits, widened by `mean_stderr`."""
        return _widen(float(self.lower.mean()), float(self.upper.mean()), self.mean_stderr, level)

    @property
    def bits_per_dimension(self) -> float:
        """-log2 p(x) per observed cell."""
        return float(-self.values.sum() / max(1, self.dimensions.sum()) / math.log(2))

    @property
    def perplexity(self) -> float:
        """Exp of the negative log-likelihood per observed cell."""
        return math.exp(min(700.0, -self.values.sum() / max(1, self.dimensions.sum())))

    def __sub__(self, other: Evidence) -> Difference:
        """Paired difference of the means, with its error; refuses what cannot be compared."""
        if not isinstance(other, Evidence):
            return NotImplemented
        why = self.incomparable(other)
        if why:
            raise IncomparableError(f"these evidences cannot be compared: {why}")
        replicates = [e.replicates.mean(axis=0) for e in (self, other) if e.replicates is not None]
        noise = [float(r.std(ddof=1) / math.sqrt(len(r))) for r in replicates]
        return Difference(
            mean=float(np.mean(self.values - other.values)),
            stderr=math.hypot(_stderr_of_rows(self.values - other.values), *noise),
            lower=float(np.mean(self.lower - other.upper)),
            upper=float(np.mean(self.upper - other.lower)),
            monte_carlo_stderr=math.hypot(*noise),
            is_sampled=bool(noise),
            methods=(self.method, other.method),
        )

    def incomparable(self, other: Evidence) -> str:
        """Why the two cannot be compared; empty when they can."""
        for evidence in (self, other):
            if evidence.kind == "unavailable":
                return f"one has no value ({evidence.reason})"
        if len(self) != len(other):
            return f"one speaks of {len(self)} rows, the other of {len(other)}"
        if self.measure != other.measure:
            return _unlike(self.measure, other.measure)
        if self.fingerprint != other.fingerprint:
            return f"they speak of different rows ({_difference_of_rows(self.fingerprint, other.fingerprint)})"
        return ""

    def __repr__(self) -> str:
        if self.kind == "unavailable":
            return f"Evidence(unavailable: {self.reason})"
        limits = ""
        if self.kind == "estimate":
            low, high = self.mean_limits()
            limits = f" in [{low:.3f}, {high:.3f}]"
        return (
            f"Evidence(mean log p {SIGNS[self.kind]} {self.mean:.3f} ± {self.mean_stderr:.3f} nats{limits}, "
            f"{self.kind}, {len(self)} rows, {self.method}, {self.measure} measure)"
        )

    def to_frame(self, backend: str = "polars") -> Any:
        """A data frame with a line for each row: value, limits, error, observed cells; kind, method and measure.

        Parameters
        ----------
        backend : the library of the frame: "polars", "pandas" or "pyarrow".

        Examples
        --------
        >>> frame = Evidence.exact([-1.0, -2.0], method="by hand").to_frame()
        >>> frame.columns
        ['row', 'value', 'lower', 'upper', 'stderr', 'dimensions', 'kind', 'method', 'measure']
        >>> frame["value"].to_list()
        [-1.0, -2.0]
        """
        from likely.tabulation import frame_of

        rows = {
            "row": np.arange(len(self)),
            "value": self.values,
            "lower": self.lower,
            "upper": self.upper,
            "stderr": self.stderr,
            "dimensions": self.dimensions,
        }
        of_all = {"kind": self.kind, "method": self.method, "measure": str(self.measure)}
        return frame_of(rows | {name: [text] * len(self) for name, text in of_all.items()}, backend)

    def _repr_html_(self) -> str:
        from likely.contract.notebook import show_evidence

        return show_evidence(self)


@dataclass(frozen=True)
class Difference:
    """Paired difference of two mean log-likelihoods, in nats per row.

    Parameters
    ----------
    mean : of the values.
    stderr : its error as a statement about the population: rows and Monte Carlo together.
    lower, upper : limits of the difference on these rows, ±inf where a bound leaves it open. As of an evidence, limits
        from Monte Carlo hold in expectation, and `limits` are widened by the error.
    monte_carlo_stderr : the part of the error that comes from Monte Carlo, given these rows.
    is_sampled : one of the two has a Monte Carlo error, so that nothing about the difference is exact.
    methods : what produced the two.
    """

    mean: float
    stderr: float
    lower: float
    upper: float
    monte_carlo_stderr: float = 0.0
    is_sampled: bool = False
    methods: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """What `mean` is: "exact", "lower" (the true difference is at least that), "upper" or "estimate".

        It is exact only if both evidences are. A bound with a Monte Carlo error is one in expectation.
        """
        at_lower, at_upper = self.lower == self.mean, self.upper == self.mean
        if at_lower and at_upper:  # limits that meet by chance make nothing exact
            return "estimate" if self.is_sampled else "exact"
        if at_lower and self.upper == math.inf:
            return "lower"
        if at_upper and self.lower == -math.inf:
            return "upper"
        return "estimate"

    def limits(self, level: float = 0.95) -> tuple[float, float]:
        """Limits of the difference on *these* rows: `lower` and `upper`, widened by `monte_carlo_stderr`."""
        return _widen(self.lower, self.upper, self.monte_carlo_stderr, level)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the population's mean difference; open where a bound leaves it open."""
        return _widen(self.lower, self.upper, self.stderr, level)

    def __str__(self) -> str:
        low, high = self.limits()
        expected = ", in expectation" if self.is_sampled else ""
        note = {
            "exact": "",
            "lower": f" (a lower bound on the difference{expected})",
            "upper": f" (an upper bound on the difference{expected})",
            "estimate": f" (limits {low:.3f} to {high:.3f})",
        }[self.kind]
        return f"{self.mean:.3f} ± {self.stderr:.3f}{note}"


def _unlike(one: Measure | str, other: Measure | str) -> str:
    """Why figures on two measures cannot be compared: by their words, and by the columns that are read differently."""
    one, other = (m if isinstance(m, Measure) else Measure(m) for m in (one, other))
    columns = one.unlike(other)
    if str(one) == str(other):
        return columns
    words = f"one is a density on the {one} measure, the other on the {other} measure"
    return f"{words}: {columns}" if columns else words


def _difference_of_rows(one: Fingerprint | str, other: Fingerprint | str) -> str:
    named = isinstance(one, Fingerprint) and isinstance(other, Fingerprint) and np.array_equal(one.rows, other.rows)
    return "their values are equal, and what these are of has other names" if named else "the data differ"


def _stderr_of_rows(values: np.ndarray) -> float:
    if not np.isfinite(values).all():  # rows of probability 0
        return math.nan
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf


def _widen(lower: Any, upper: Any, stderr: Any, level: float) -> tuple[Any, Any]:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")
    from statistics import NormalDist

    margin = NormalDist().inv_cdf(0.5 + level / 2) * stderr
    return lower - margin, upper + margin


def _digest(array: np.ndarray) -> str:
    from hashlib import blake2b

    return blake2b(np.ascontiguousarray(array).tobytes(), digest_size=8).hexdigest()
