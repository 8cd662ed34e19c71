"""What an audit finds: a figure of a model, and the bound that it must keep.

Figures that rounding alone may move are differences in nats or in shares, with a bound of float32's making. Figures
that chance may move are *surprises*, -log10 of the probability that a right model is at least so far off. All of them
have one bound, so that the rate of false alarms is known: 1e-6 for each, and some two hundred of them in `make test`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

ALPHA = 1e-6
MOST_SURPRISE = -np.log10(ALPHA)
LEAST_EXPECTED = 5.0  # rows expected in a cell of a chi-square; rarer cells are joined


class Size(NamedTuple):
    """How closely an audit looks.

    n_draws : rows behind a chi-square. n_runs : seeds behind a mean that is sampled. n_ranked : rows whose truth is
    ranked among draws. n_machines : whose intervals are counted. n_chains : runs of a kernel.
    """

    n_draws: int
    n_runs: int
    n_ranked: int
    n_machines: int
    n_chains: int


SMALL = Size(n_draws=800, n_runs=4, n_ranked=400, n_machines=20, n_chains=20_000)
WHOLE = Size(n_draws=4000, n_runs=10, n_ranked=2000, n_machines=60, n_chains=100_000)


@dataclass(frozen=True)
class Finding:
    """A figure and its bound.

    Parameters
    ----------
    model : the class, and what it was tried on: "RBM, mixed".
    check : what was looked at: "sum over all rows".
    figure, bound : the check holds where figure <= bound.
    unit : of both: "nats", "surprise", "share".
    """

    model: str
    check: str
    figure: float
    bound: float
    unit: str

    @property
    def holds(self) -> bool:
        return bool(self.figure <= self.bound)  # NaN does not

    def require(self) -> None:
        """Raise unless the bound is kept."""
        assert self.holds, f"{self.model}, {self.check}: {self.figure:.3g} {self.unit}, at most {self.bound:.3g}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def surprise(p_value: float, n_looks: int = 1) -> float:
    """-log10 of a probability, of the least of so many where several are looked at (Bonferroni)."""
    return float(abs(np.log10(np.clip(p_value * n_looks, 1e-300, 1.0))))


def of_counts(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Surprise of counts at exact probabilities, by chi-square; rare cells are joined."""
    expected = probabilities / probabilities.sum() * counts.sum()
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    n_rare = int(np.searchsorted(np.cumsum(expected), LEAST_EXPECTED)) + 1
    n_rare = max(n_rare, int((expected < LEAST_EXPECTED).sum()))
    counts = np.append(counts[n_rare:], counts[:n_rare].sum())
    expected = np.append(expected[n_rare:], expected[:n_rare].sum())
    if len(counts) < 2:
        return 0.0
    statistic = ((counts - expected) ** 2 / expected).sum()
    return surprise(stats.chi2.sf(statistic, len(counts) - 1))


def of_mean(values: np.ndarray, exact: float) -> float:
    """Surprise of independent values whose mean should be exact; two-sided, by Student's t."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    off = abs(values.mean() - exact)
    return surprise(2 * stats.t.sf(off / max(error, 1e-12), len(values) - 1)) if off > 1e-6 else 0.0


def of_coverage(covered: int, n: int, level: float) -> float:
    """Surprise of so few intervals that hold the truth; more than the level promises is no surprise."""
    return surprise(stats.binom.cdf(covered, n, level))


def of_ranks(ranks: np.ndarray, n_draws: int) -> float:
    """Surprise of ranks of the truth among so many draws, which are uniform on 0, ..., n_draws (Talts et al., 2018)."""
    return of_counts(np.bincount(ranks, minlength=n_draws + 1), np.ones(n_draws + 1))
