"""Evidence from a lower bound on the unnormalised log p of rows and a log Z that is known or estimated."""

from __future__ import annotations

import numpy as np

from likely.contract.evidence import Evidence
from likely.models.energy.harmonium.answers import LogSum


def bound_evidence(
    bounds: np.ndarray, replicates: np.ndarray | None, log_z: LogSum, rows: np.ndarray, method: str
) -> Evidence:
    """bounds - log Z, labelled: a lower bound where log Z is exact, else an estimate with a lower limit.

    Where log Z is estimated, the limit takes its high end, by reverse annealing, and the values its low end; nothing is
    known above.

    Parameters
    ----------
    bounds : (n,) lower bounds, in expectation where they have replicates (n, r).
    log_z : of the machine, one value each.
    rows : (n, d), of which those without an observed cell have evidence 0.
    """
    bounds = bounds.astype(np.float64)
    spread = joined(replicates, log_z.replicates)
    values, lower, upper = bounds - log_z.low, bounds - log_z.high, np.full(len(bounds), np.inf)
    of_values = None if spread is None else spread + values[:, None]
    nothing = np.isnan(rows).all(axis=1)
    for array in (values, lower, of_values):
        if array is not None:
            array[nothing] = 0.0  # of no cells at all the probability is 1
    if log_z.replicates is None:
        return Evidence.lower_bound(values, of_values, method=method)
    upper[nothing] = 0.0
    return Evidence.estimate(values, lower, upper, of_values, method=method)


def joined(of_rows: np.ndarray | None, of_log_z: np.ndarray | None) -> np.ndarray | None:
    """Deviations (n, r) of replicates of a difference from their mean, groups joined to as many as the fewer have."""
    given = [np.atleast_2d(np.asarray(a, np.float64)) for a in (of_rows, of_log_z) if a is not None]
    if not given:
        return None
    n_groups = min(a.shape[1] for a in given)
    parts = [np.stack([g.mean(axis=1) for g in np.array_split(a, n_groups, axis=1)], axis=1) for a in given]
    parts = [part - part.mean(axis=1, keepdims=True) for part in parts]
    # the two errors are independent, so signs do not matter
    return parts[0] if len(parts) == 1 else parts[0] - parts[1]
