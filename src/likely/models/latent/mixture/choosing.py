"""Which components a mixture has where nobody said: those that make held-out rows likelier.

Products over columns follow every cap and every round number, and need many components where columns go together; joint
Gaussians of normal scores follow both, as far as a column can be bent into a Gaussian. Neither is the better one for
all tables, so that both learn from nine tenths of the rows, of 10,000 at most, and are judged by the last tenth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likely.contract.estimator import FitRun
from likely.memory import taken
from likely.models.latent.mixture.joint import MOST_PATTERNS
from likely.schema import Schema

if TYPE_CHECKING:
    from likely.models.latent.mixture.mixture import Mixture

# Fewer rows tell little: a tenth of them is 200. Of more than 50,000 a fit of joint Gaussians would take minutes.
_LEAST_ROWS, _MOST_ROWS, _ROWS_TRIED = 2_000, 50_000, 10_000
_MOST_NUMBERS = 30  # columns whose covariances a component has: it has half the square of them to learn


def is_open(schema: Schema, encoded: np.ndarray) -> bool:
    """Whether there is a choice: enough rows and not too many, and numbers that may go together.

    Where holes have many patterns, joint Gaussians would take minutes.
    """
    places = [place for place, kind in enumerate(schema.kinds) if kind in ("grid", "real", "datetime")]
    n_numbers = sum(schema.kinds[place] != "datetime" for place in places)
    if not (_LEAST_ROWS <= len(encoded) <= _MOST_ROWS and n_numbers >= 2 and len(places) <= _MOST_NUMBERS):
        return False
    unobserved = [_unobserved(np.asarray(encoded[:, place]), schema.columns[place].spikes) for place in places]
    return len(np.unique(np.packbits(np.stack(unobserved), axis=0), axis=1).T) <= MOST_PATTERNS


def _unobserved(cells: np.ndarray, spikes: tuple[float, ...]) -> np.ndarray:
    """(n,) where a column has no number for a Gaussian: in holes, and on spikes."""
    return np.isnan(cells) | np.isin(cells, spikes)


def held_out(model: Mixture, encoded: np.ndarray, weight: np.ndarray | None, seed: int) -> dict[str, float]:
    """Mean log p of held-out rows under each kind of components, learned from the others by the model's settings."""
    weight = np.ones(len(encoded)) if weight is None else weight
    order = np.random.default_rng(seed).permutation(np.flatnonzero(weight > 0))[:_ROWS_TRIED]
    apart = max(1, len(order) // 10)
    judged, learned = np.sort(order[:apart]), np.sort(order[apart:])
    encoded = np.asarray(encoded)
    return {
        covariance: _log_p(
            _learned(model, covariance, seed, taken(encoded, learned), weight[learned]),
            taken(encoded, judged),
            weight[judged],
        )
        for covariance in ("diagonal", "scores")
    }


def _learned(model: Mixture, covariance: str, seed: int, encoded: np.ndarray, weight: np.ndarray) -> Mixture:
    """A mixture with these components, of encoded rows."""
    # One start of each: better ones gain less than what the two kinds are apart, where it matters.
    settings = model.get_params(deep=False) | {"covariance": covariance, "random_state": seed, "n_init": 1}
    found = type(model)(**settings)
    found.schema_, found.seed_ = model.schema_, seed
    found.cells_ = found._fit_cells(encoded, weight)
    found.columns_ = found.cells_.columns
    found.history_ = {}
    found.params_ = found._fit(found._to_learn(encoded, 0), found._key("fit"), FitRun(weight=weight))
    return found


def _log_p(model: Mixture, encoded: np.ndarray, weight: np.ndarray) -> float:
    return float(np.average(model._log_p_to_compare(encoded, None), weights=weight))
