"""What an evidence must know of itself: which columns are densities, which rows it speaks of, and what is sampled."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import likely
from likely.contract.evidence import Evidence, IncomparableError
from likely.leaderboard import Entry, Leaderboard
from likely.schema import Column, Schema

ALPHA = 1e-5  # of a false alarm

AS_BINARY = Schema((Column("age", "real"), Column("smokes", "binary"), Column("height", "real")))
AS_REAL = Schema((Column("age", "real"), Column("smokes", "real"), Column("height", "count")))


def smokers(n: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "smokes": (rng.random(n) < 0.3).astype(float),
            "height": rng.integers(150, 190, n).astype(float),
        }
    )


def check_readings_of_a_bit() -> None:
    """A bit that is read as real is a density, whatever else is one: refused, set apart, with the column's name."""
    table = smokers()
    one, other = (likely.Independent(schema=schema).fit(table).evidence(table) for schema in (AS_BINARY, AS_REAL))
    assert [str(one.measure), str(other.measure)] == ["mixed", "mixed"]
    assert one.fingerprint == other.fingerprint, "the rows are the same, however they are read"
    assert one.incomparable(other), "a density and a probability of one bit are compared"
    with pytest.raises(IncomparableError, match="column 'smokes' is a density in one and a probability in the other"):
        one - other
    board = Leaderboard([Entry("binary", one), Entry("again", one), Entry("real", other)])
    assert [entry.name for entry in board.ranked] == ["binary", "again"], "a density is ranked among probabilities"
    assert "column 'smokes' is a density" in board["real"].apart


def check_values_are_named(evidence_of=None) -> None:
    """Tables of equal codes and different values are different rows; of equal values and different codes the same."""
    evidence_of = evidence_of or _evidence_of
    one, other = (evidence_of(pl.DataFrame({"letter": list(letters)})) for letters in ("aabb", "bbcc"))
    assert one.fingerprint != other.fingerprint, "rows of (a, b) and of (b, c) have one name"
    with pytest.raises(IncomparableError, match="different rows"):
        one - other
    # a third category, which does not occur in these rows, moves the codes and not the values
    wide = likely.Independent().fit(pl.DataFrame({"letter": list("Aaabb")}))
    again = wide.evidence(pl.DataFrame({"letter": list("aabb")}))
    assert again.fingerprint == one.fingerprint, "the name of rows depends on what else might have been in them"
    renamed = evidence_of(pl.DataFrame({"character": list("aabb")}))
    assert renamed.fingerprint != one.fingerprint, "columns of other names have one name"


def _evidence_of(table: pl.DataFrame) -> Evidence:
    return likely.Independent().fit(table).evidence(table)


def check_slices(evidence_of, rows, chosen) -> None:
    """Some rows of an evidence speak of the same as the evidence of those rows."""
    part, alone = (
        evidence_of(rows)[chosen],
        evidence_of([rows[i] for i in chosen] if isinstance(rows, list) else rows[chosen]),
    )
    assert part.fingerprint == alone.fingerprint, "a slice of an evidence is not the evidence of the slice"
    assert (part - alone).mean == pytest.approx(0, abs=1e-5)


def sampled(values: np.ndarray, kind: str = "estimate", spread: float = 0.1) -> Evidence:
    """An evidence with a Monte Carlo error."""
    replicates = values[:, None] + spread * np.array([-1.0, 1.0, 0.5, -0.5])
    if kind == "estimate":
        return Evidence.estimate(values, values, values, replicates=replicates, method="sampled")
    make = {"lower": Evidence.lower_bound, "upper": Evidence.upper_bound}[kind]
    return make(values, replicates=replicates, method="sampled")


def check_kinds_of_differences() -> None:
    """A difference is exact if both sides are; a bound with Monte Carlo error stays a bound, and says so."""
    values = np.array([-1.0, -2.0, -3.5])
    known = Evidence.exact(values, method="known")
    assert (known - known).kind == "exact"
    for difference in (known - sampled(values), sampled(values) - known, sampled(values) - sampled(values)):
        assert difference.kind == "estimate", "a difference of sampled values is called exact"
        assert difference.is_sampled
        assert difference.monte_carlo_stderr > 0
    lower, upper = sampled(values, "lower") - known, sampled(values, "upper") - known
    assert (lower.kind, upper.kind) == ("lower", "upper")
    assert "in expectation" in str(lower)
    assert "in expectation" not in str(Evidence.lower_bound(values, method="known") - known)


def check_limits_hold(evidence: Evidence, truth: np.ndarray, levels: tuple[float, ...] = (0.5, 0.8, 0.95)) -> None:
    """The limits of independent rows hold their true value at the stated rate or above it, up to chance."""
    for level in levels:
        low, high = evidence.limits(level)
        held = int(np.sum((low <= truth) & (truth <= high)))
        least = stats.binom.ppf(ALPHA, len(truth), level)
        assert held >= least, (
            f"{held} of {len(truth)} limits of level {level} hold the truth, {least:.0f} at least must"
        )
