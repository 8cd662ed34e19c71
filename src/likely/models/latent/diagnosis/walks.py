"""Looking around in a code: what changes with one number of it, what lies between two rows, what a plane of it shows.

For any model with `transform` and `inverse_transform`.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from likely.contract.model import Model


def traverse(model: Model, row: Any, values: Any, components: Any = None) -> list[Any]:
    """Expected rows along the axes of the code, from a row's own code.

    Parameters
    ----------
    model : fitted, with a code.
    row : (1, n_columns) the row to start from.
    values : (m,) what the number of the code is set to, one after the other.
    components : which numbers of the code; None takes all.

    Returns
    -------
    For each component m rows, of the kind that `fit` saw.

    Examples
    --------
    >>> import likely
    >>> rows = np.random.default_rng(0).normal(size=(200, 1)) @ [[1.0, 2.0, -1.0]]
    >>> model = likely.ProbabilisticPCA(1).fit(rows)
    >>> [moved] = traverse(model, rows[:1], [-1, 0, 1])
    >>> np.allclose(moved[2] - moved[1], moved[1] - moved[0])    # a linear code moves along a line
    True
    """
    code = _code(model, row, "row")
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"`values` must be a list of numbers, got shape {values.shape}.")
    components = range(code.shape[1]) if components is None else components
    odd = [c for c in components if not 0 <= c < code.shape[1]]
    if odd:
        raise ValueError(f"`components` must lie in 0..{code.shape[1] - 1}, got {odd[0]}.")
    return [model.inverse_transform(_moved(code, component, values)) for component in components]


def interpolate(model: Model, first: Any, last: Any, n: int = 8) -> Any:
    """N expected rows on the straight line between the codes of two rows, both ends included."""
    if n < 2:
        raise ValueError(f"`n` must be at least 2, got {n}: both ends are among them.")
    start, end = _code(model, first, "first"), _code(model, last, "last")
    share = np.linspace(0, 1, n)[:, None]
    return model.inverse_transform((1 - share) * start + share * end)


def manifold(model: Model, n: int = 20) -> Any:
    """N² expected rows for a grid of two-dimensional codes, at the quantiles of a standard normal; row by row."""
    if model.n_components != 2:
        raise ValueError(f"a manifold is drawn for 2 components, {type(model).__name__} has {model.n_components}.")
    if n < 2:
        raise ValueError(f"`n` must be at least 2, got {n}.")
    normal = NormalDist()
    at = np.array([normal.inv_cdf((i + 0.5) / n) for i in range(n)])
    down, across = np.meshgrid(-at, at, indexing="ij")
    return model.inverse_transform(np.stack([across.ravel(), down.ravel()], axis=1))


def _moved(code: np.ndarray, component: int, values: np.ndarray) -> np.ndarray:
    codes = np.repeat(code, len(values), axis=0)
    codes[:, component] = values
    return codes


def _code(model: Model, row: Any, name: str) -> np.ndarray:
    codes = np.asarray(model.transform(row), dtype=np.float64)
    if len(codes) != 1:
        raise ValueError(f"`{name}` must be one row, (1, n_columns), got {len(codes)} rows.")
    return codes
