"""Sums Σ exp(-E) that are known or sandwiched, and the evidence that two of them make: log p(x) = log Σ_x - log Z.

Annealed importance sampling gives a log sum that is low on average, the reverse one that is high (see
`likely.montecarlo.ais`). An evidence is a difference of two log sums, so its lower limit takes log Z from the reverse
and its value and upper limit take log Z from the forward run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.contract.evidence import Evidence
from likely.montecarlo import log_mean_weight, replicate_log_mean


class LogSum(NamedTuple):
    """Log Σ exp(-E) of some machines: an estimate that is low on average, and one that is high.

    Both are the exact value where it is known. Replicates are about the first and as noisy as the noisier of the two,
    so that their error covers both limits.
    """

    low: np.ndarray  # (n,)
    high: np.ndarray  # (n,)
    replicates: np.ndarray | None  # (n, r)

    @classmethod
    def exact(cls, values: np.ndarray, n_replicates: int | None = None) -> LogSum:
        """Known sums (n,); with replicates, all equal, where they stand beside sums that are sampled."""
        values = np.asarray(values, np.float64)
        same = None if n_replicates is None else np.repeat(values[:, None], n_replicates, axis=1)
        return cls(values, values, same)


def sandwich(forward: np.ndarray, reverse: np.ndarray, n_groups: int) -> LogSum:
    """Log Σ exp(-E) of n machines from the annealed chains (n, c) of each, there and back.

    Parameters
    ----------
    forward : log weights whose exponentials have mean Σ exp(-E).
    reverse : log weights whose exponentials have mean 1 / Σ exp(-E).
    n_groups : of chains, each of which makes a replicate.

    Examples
    --------
    Chains that all agree know the sum, here 3:

    >>> known = sandwich(np.full((1, 8), np.log(3.0)), np.full((1, 8), -np.log(3.0)), 4)
    >>> np.exp([known.low[0], known.high[0], *known.replicates[0]]).round(6).tolist()
    [3.0, 3.0, 3.0, 3.0, 3.0, 3.0]
    """
    low, high = log_mean_weight(forward.T), -log_mean_weight(reverse.T)
    of_low, of_high = (replicate_log_mean(chains.T, n_groups).T for chains in (forward, reverse))
    of_high = low[:, None] + of_high.mean(axis=1, keepdims=True) - of_high  # its spread, about the low end
    noisier = of_high.std(axis=1, keepdims=True) > of_low.std(axis=1, keepdims=True)
    # Noise may turn the two ends round where they are close.
    return LogSum(low, np.maximum(low, high), np.where(noisier, of_high, of_low))


def evidence_of_sums(sums: LogSum, log_z: LogSum, rows: np.ndarray, method: str) -> Evidence:
    """log Σ exp(-E) of rows, their observed cells clamped, minus log Z: exact, or an estimate between two limits.

    Parameters
    ----------
    sums : of each row. log_z : of the machine, one value each.
    rows : (n, d) with NaN where unobserved.
    method : for people.
    """
    values, lower, upper = sums.low - log_z.low, sums.low - log_z.high, sums.high - log_z.low
    if sums.replicates is None and log_z.replicates is None:
        return Evidence.exact(_certain(values, rows), method=method)
    of_sums, of_log_z = (s.low[:, None] if s.replicates is None else s.replicates for s in (sums, log_z))
    parts = (_certain(part, rows) for part in (values, lower, upper, of_sums - of_log_z))
    return Evidence.estimate(*parts, method=method)


def evidence_of_bounds(
    bounds: np.ndarray, replicates: np.ndarray | None, log_z: LogSum, rows: np.ndarray, method: str
) -> Evidence:
    """Lower bounds on log Σ exp(-E) of rows, minus log Z: a lower bound, or an estimate where log Z is one.

    Where log Z is estimated, the lower limit takes its high end, by reverse annealing, and the values its low end;
    nothing is known above.

    Parameters
    ----------
    bounds : (n,), in expectation where they have replicates (n, r).
    log_z, rows, method : as for `evidence_of_sums`.
    """
    bounds = bounds.astype(np.float64)
    values, lower, upper = bounds - log_z.low, bounds - log_z.high, np.full(len(bounds), np.inf)
    deviations = _deviations(replicates, log_z.replicates)
    of_values = None if deviations is None else _certain(deviations + values[:, None], rows)
    values, lower, upper = (_certain(part, rows) for part in (values, lower, upper))
    if log_z.replicates is None:
        return Evidence.lower_bound(values, of_values, method=method)
    return Evidence.estimate(values, lower, upper, of_values, method=method)


def _certain(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Values (n,) or (n, r) with 0 for rows without an observed cell: of no cells at all the probability is 1."""
    nothing = np.isnan(rows).all(axis=1)
    return np.where(nothing if values.ndim == 1 else nothing[:, None], 0.0, values)


def _deviations(of_rows: np.ndarray | None, of_log_z: np.ndarray | None) -> np.ndarray | None:
    """Deviations (n, r) of replicates of a difference from their mean, groups joined to as many as the fewer have."""
    given = [np.atleast_2d(np.asarray(a, np.float64)) for a in (of_rows, of_log_z) if a is not None]
    if not given:
        return None
    n_groups = min(a.shape[1] for a in given)
    parts = [np.stack([g.mean(axis=1) for g in np.array_split(a, n_groups, axis=1)], axis=1) for a in given]
    parts = [part - part.mean(axis=1, keepdims=True) for part in parts]
    # The two errors are independent, so the sign of either does not matter.
    return parts[0] if len(parts) == 1 else parts[0] - parts[1]
