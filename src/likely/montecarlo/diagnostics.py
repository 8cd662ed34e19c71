"""Whether chains have met, and what their draws are worth: R-hat and effective sample size, by ArviZ.

Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021): rank-normalised split R-hat and bulk effective sample size.
Draws are arrays (n_chains, n_draws, ...), one number out for each of the last axes. Cost: milliseconds a quantity, and
a second once to load ArviZ.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_FEWEST_DRAWS = 4  # ArviZ's own limit


class Summary(NamedTuple):
    """Of each quantity: mean, standard deviation of a draw, error of the mean, R-hat and effective number of draws."""

    mean: np.ndarray
    std: np.ndarray
    stderr: np.ndarray
    r_hat: np.ndarray
    n_effective: np.ndarray


def r_hat(draws: Any) -> np.ndarray:
    """How much wider the chains lie together than each by itself; below 1.01 they may be taken to have met.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> met = rng.normal(size=(4, 1000))
    >>> apart = met + np.array([[0.0], [0.0], [0.0], [3.0]])
    >>> round(float(r_hat(met)), 2), round(float(r_hat(apart)), 2)
    (1.0, 1.48)
    """
    draws = _checked(draws)
    if len(draws) < 2:
        raise ValueError("R-hat compares chains: `draws` must have at least 2 along its first axis, got 1.")
    return _each(draws, _arviz().rhat)


def effective_draws(draws: Any) -> np.ndarray:
    """How many independent draws would give the mean with the same error."""
    return _each(_checked(draws), _arviz().ess)


def summary(draws: Any) -> Summary:
    """Mean, spread, error and convergence of every quantity in (n_chains, n_draws, ...)."""
    draws = _checked(draws)
    n_effective = effective_draws(draws)
    std = draws.std(axis=(0, 1), ddof=1)
    return Summary(draws.mean(axis=(0, 1)), std, std / np.sqrt(n_effective), r_hat(draws), n_effective)


def _checked(draws: Any) -> np.ndarray:
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim < 2:
        raise ValueError(f"`draws` must be (n_chains, n_draws, ...), got shape {draws.shape}: add an axis for chains.")
    if draws.shape[1] < _FEWEST_DRAWS:
        raise ValueError(f"`draws` must hold at least {_FEWEST_DRAWS} draws a chain, got {draws.shape[1]}: draw more.")
    if not np.isfinite(draws).all():
        raise ValueError("`draws` must be finite: a chain has left the numbers; lower its step size.")
    return draws


def _each(draws: np.ndarray, measure: Callable[[np.ndarray], Any]) -> np.ndarray:
    """measure(chains, draws) of every quantity; a quantity that never changes is known, and its chains have met."""
    shape = draws.shape[2:]
    flat = draws.reshape(*draws.shape[:2], -1)
    constant = np.ptp(flat, axis=(0, 1)) == 0
    known = 1.0 if measure is _arviz().rhat else float(flat.shape[0] * flat.shape[1])
    out = [known if constant[i] else float(measure(flat[:, :, i])) for i in range(flat.shape[2])]
    return np.array(out).reshape(shape)


@functools.lru_cache(maxsize=1)
def _arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # it announces its next version at every import
        import arviz
    return arviz
