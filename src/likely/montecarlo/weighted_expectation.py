"""Importance sampling: E_p f ≈ Σ w_i f(x_i), draws from q and weights p/q, normalised by n or by their own sum.

Notes 000, Eq. 123-127. With p normalised the plain average is unbiased; with p known up to a constant the weights are
divided by their sum, which is biased by O(1/n) and needs no constant. The best q is proportional to p|f| (Eq. 126):
its variance is zero where f keeps its sign. Pareto k (Vehtari, Simpson, Gelman, Yao and Gabry, 2024) measures the tail
of the weights: above 0.7 the average has not settled and its error is not to be trusted. Cost: one pass over weights.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from likely.montecarlo.diagnostics import _arviz

LARGEST_K = 0.7  # beyond it, by Vehtari and others, no practical number of draws makes the average settle
_FEWEST_FOR_K = 25  # With fewer draws there are less than five in the tail, too few to fit one to.
_ROUNDING = 1e-9  # Log weights that differ by no more than this, by rounding alone, have no tail.


class TailWarning(UserWarning):
    """Importance weights with so heavy a tail that neither the average nor its error can be trusted."""


class WeightedEstimate(NamedTuple):
    """A weighted average, its standard error, the number of draws and their effective number.

    pareto_k : tail of the weights; where p is normalised, of what is averaged, w|f|, the largest of all columns.
    """

    mean: np.ndarray
    stderr: np.ndarray
    n: int
    n_effective: float
    pareto_k: float


def importance_expectation(
    log_target: Any, log_proposal: Any, values: Any, *, normalised: bool = False
) -> WeightedEstimate:
    """E_p f from draws of q.

    Parameters
    ----------
    log_target : (n,) log p at the draws; up to a constant unless `normalised`.
    log_proposal : (n,) log q at the draws, normalised where log p is.
    values : (n, ...) f at the draws.
    normalised : divide by n, not by the weights' sum.

    Warns
    -----
    TailWarning : if Pareto k is above 0.7. Then take a q with heavier tails than p.

    Examples
    --------
    >>> from scipy import stats
    >>> x = stats.t(3).rvs(10_000, random_state=0)
    >>> estimate = importance_expectation(-0.5 * x**2, stats.t(3).logpdf(x), x**2)    # E x² = 1 under N(0, 1)
    >>> round(float(estimate.mean), 2), round(float(estimate.stderr), 3), round(estimate.n_effective)
    (0.99, 0.011, 9225)
    """
    values = np.asarray(values, dtype=np.float64)
    log_weights = _log_weights(log_target, log_proposal, len(values))
    tail = _largest_k(log_weights, values) if normalised else pareto_k(log_weights)
    if tail > LARGEST_K:
        warnings.warn(
            f"Pareto k of the importance weights is {tail:.2f}, above {LARGEST_K}: a few draws carry the average and "
            "its error is too small. Use a proposal with heavier tails, closer to the target.",
            TailWarning,
            stacklevel=2,
        )
    average = _plain if normalised else _self_normalised
    return WeightedEstimate(*average(log_weights, values), len(values), effective_weights(log_weights), tail)


def effective_weights(log_weights: Any) -> float:
    """(Σ w)² / Σ w²: of n for equal weights, 1 where one draw has them all."""
    weights = _scaled(np.asarray(log_weights, dtype=np.float64))
    return float(weights.sum() ** 2 / (weights**2).sum())


def pareto_k(log_weights: Any) -> float:
    """Shape of a generalised Pareto distribution fitted to the largest weights.

    The mean of the weights exists below 1, their variance below 1/2; NaN where there are too few draws to tell, -inf
    where the largest weights are equal.
    """
    log_weights = np.asarray(log_weights, dtype=np.float64)
    if len(log_weights) < _FEWEST_FOR_K:
        return float("nan")
    if np.ptp(np.sort(log_weights)[-5:]) < _ROUNDING:
        return float("-inf")
    return float(_smooth(log_weights)[1])


def smoothed_log_weights(log_weights: Any) -> np.ndarray:
    """Log weights that sum to one, the largest replaced by quantiles of the fitted Pareto tail (PSIS)."""
    return np.asarray(_smooth(np.asarray(log_weights, dtype=np.float64))[0])


def _largest_k(log_weights: np.ndarray, values: np.ndarray) -> float:
    """Of the terms w|f| that a plain average adds up: with q ∝ p|f| they are equal, however the weights vary."""
    sizes = np.abs(values.reshape(len(values), -1))
    with np.errstate(divide="ignore"):
        terms = log_weights[:, None] + np.log(sizes)
    return max((pareto_k(column) for column in terms.T if np.isfinite(column).any()), default=float("-inf"))


def _smooth(log_weights: np.ndarray) -> Any:
    # Draws of weight zero are in no tail, and ArviZ takes finite numbers only.
    finite = log_weights[np.isfinite(log_weights)]
    floor = finite.max() - 700
    return _arviz().psislw(np.maximum(log_weights, floor))


def _log_weights(log_target: Any, log_proposal: Any, n: int) -> np.ndarray:
    target, proposal = (np.asarray(a, dtype=np.float64) for a in (log_target, log_proposal))
    if target.shape != (n,) or proposal.shape != (n,) or n < 2:
        raise ValueError(
            f"`log_target`, `log_proposal` and `values` must have one entry for each of at least 2 draws, got shapes "
            f"{target.shape}, {proposal.shape} and {n} values."
        )
    if not np.isfinite(proposal).all():
        raise ValueError("`log_proposal` must be finite: no draw can come from where the proposal has no density.")
    if np.isnan(target).any() or np.isposinf(target).any() or np.isneginf(target).all():
        raise ValueError("`log_target` must be below +inf, not NaN, and above -inf at one draw at least.")
    return target - proposal


def _plain(log_weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    terms = _columns(np.exp(log_weights), values) * values
    return terms.mean(axis=0), terms.std(axis=0, ddof=1) / np.sqrt(len(terms))


def _self_normalised(log_weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weights = _scaled(log_weights)
    share = _columns(weights / weights.sum(), values)
    mean = (share * values).sum(axis=0)
    return mean, np.sqrt((share**2 * (values - mean) ** 2).sum(axis=0))  # delta method


def _scaled(log_weights: np.ndarray) -> np.ndarray:
    return np.exp(log_weights - log_weights.max())


def _columns(per_draw: np.ndarray, values: np.ndarray) -> np.ndarray:
    return per_draw.reshape(-1, *(1,) * (values.ndim - 1))
