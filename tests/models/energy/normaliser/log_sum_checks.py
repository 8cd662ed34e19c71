"""Sandwiches of known sums and evidences of an enumerated machine; the controls hand in broken functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from likely.contract.evidence import Evidence
from likely.models.energy.normaliser.log_sum import LogSum
from tests.models.energy.harmonium.learning_checks import ALPHA

N_MACHINES, N_CHAINS, N_GROUPS = 4000, 64, 16
SPREAD = 0.5  # standard deviation of a chain's log weight, each way
LIMIT = stats.norm.isf(ALPHA)


def annealed_chains(log_z: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Log weights (n, c) as a perfect annealing would give them: log-normal, with means Z there and 1/Z back."""
    rng = np.random.default_rng(seed)
    noise = SPREAD * rng.normal(size=(2, len(log_z), N_CHAINS)) - SPREAD**2 / 2
    return log_z[:, None] + noise[0], noise[1] - log_z[:, None]


def check_sandwich(sandwich: Callable[[np.ndarray, np.ndarray, int], LogSum], seed: int) -> None:
    """Of many machines: low on average, high on average, by what Jensen's inequality costs; errors as they are."""
    log_z = np.random.default_rng([seed, 1]).normal(10, 3, N_MACHINES)
    found = sandwich(*annealed_chains(log_z, seed), N_GROUPS)
    assert found.replicates is not None
    assert found.replicates.shape == (N_MACHINES, N_GROUPS)
    variance = np.expm1(SPREAD**2) / N_CHAINS  # relative, of a mean weight; its logarithm loses half of it on average
    noise = LIMIT * np.sqrt(variance / N_MACHINES)
    assert abs(np.mean(found.low - log_z) + variance / 2) < noise
    # The high end is the larger of both, so on average above what the reverse alone would give.
    assert np.mean(found.high - log_z) > variance / 2 - noise
    assert (found.low <= found.high).all()
    np.testing.assert_allclose(found.replicates.mean(axis=1), found.low, rtol=1e-9)
    # The noisier of two estimates of one variance: at least that variance, at most both together.
    told = found.replicates.var(axis=1, ddof=1).mean() / N_GROUPS
    margin = LIMIT * np.sqrt(2 / (N_GROUPS - 1) / N_MACHINES)
    assert 1 - margin < told / variance < 2 + margin, f"errors of {np.sqrt(told):.4f} for {np.sqrt(variance):.4f}"


class SmallTable:
    """Three bits with any energies: every row and every row with holes, and their log probabilities by enumeration."""

    def __init__(self, seed: int) -> None:
        states = np.indices((2, 2, 2)).reshape(3, -1).T.astype(np.float64)
        logs = 2 * np.random.default_rng(seed).normal(size=8)
        cells = np.indices((3, 3, 3)).reshape(3, -1).T.astype(np.float64)
        self.rows = np.where(cells == 2, np.nan, cells)
        agrees = (np.isnan(self.rows)[:, None] | (self.rows[:, None] == states[None])).all(axis=2)
        self.sums = logsumexp(np.where(agrees, logs[None], -np.inf), axis=1)
        self.log_z = logsumexp(logs)
        self.log_prob = self.sums - self.log_z


def check_evidence_of_sums(evidence_of_sums: Callable[..., Evidence], seed: int) -> None:
    """Exact from exact sums; from sandwiches a value and the two limits that the four ends allow, and no narrower."""
    table = SmallTable(seed)
    exact = evidence_of_sums(LogSum.exact(table.sums), LogSum.exact([table.log_z]), table.rows, "by hand")
    assert exact.kind == "exact"
    np.testing.assert_allclose(exact.values, table.log_prob, rtol=0, atol=1e-12)
    rng = np.random.default_rng([seed, 2])
    below, above = rng.random((2, len(table.sums))), rng.random(2)
    spread = rng.normal(size=(len(table.sums), 4)), rng.normal(size=(1, 4))
    sums = LogSum(table.sums - below[0], table.sums + below[1], table.sums[:, None] - below[0][:, None] + spread[0])
    log_z = LogSum(*(np.array([table.log_z + a]) for a in (-above[0], above[1])), table.log_z - above[0] + spread[1])
    some = ~np.isnan(table.rows).all(axis=1)
    found = evidence_of_sums(sums, log_z, table.rows, "by hand")
    assert found.kind == "estimate"
    for name, wanted in (
        ("values", table.log_prob - below[0] + above[0]),
        ("lower", table.log_prob - below[0] - above[1]),
        ("upper", table.log_prob + below[1] + above[0]),
    ):
        np.testing.assert_allclose(getattr(found, name), np.where(some, wanted, 0), rtol=0, atol=1e-12)
    wanted = found.values[:, None] + np.where(some[:, None], spread[0] - spread[1], 0)
    np.testing.assert_allclose(found.replicates, wanted, rtol=0, atol=1e-12)


def check_evidence_of_bounds(evidence_of_bounds: Callable[..., Evidence], seed: int) -> None:
    """A lower bound where log Z is known; else its limit takes the high end of log Z, and both errors are told."""
    table, rng = SmallTable(seed), np.random.default_rng([seed, 3])
    some = ~np.isnan(table.rows).all(axis=1)
    loss = rng.random(len(table.sums))
    bounds = table.sums - loss
    bound = evidence_of_bounds(bounds, None, LogSum.exact([table.log_z]), table.rows, "by hand")
    assert bound.kind == "lower"
    np.testing.assert_allclose(bound.values, np.where(some, table.log_prob - loss, 0), rtol=0, atol=1e-12)
    of_rows, of_log_z = rng.normal(size=(len(bounds), 6)), rng.normal(size=(1, 3))
    log_z = LogSum(np.array([table.log_z - 0.2]), np.array([table.log_z + 0.3]), table.log_z - 0.2 + of_log_z)
    found = evidence_of_bounds(bounds, bounds[:, None] + of_rows, log_z, table.rows, "by hand")
    assert found.kind == "estimate"
    np.testing.assert_allclose(found.values[some], (table.log_prob - loss)[some] + 0.2, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.lower[some], (table.log_prob - loss)[some] - 0.3, rtol=0, atol=1e-12)
    assert np.isposinf(found.upper[some]).all()
    assert (found.lower[~some] == 0).all()
    assert (found.upper[~some] == 0).all()
    # Six replicates of the rows are joined in pairs to the three of log Z; they are about the values.
    deviations = of_rows.reshape(-1, 3, 2).mean(axis=2) - of_log_z
    deviations = np.where(some[:, None], deviations - deviations.mean(axis=1, keepdims=True), 0)
    np.testing.assert_allclose(found.replicates, found.values[:, None] + deviations, rtol=0, atol=1e-12)
