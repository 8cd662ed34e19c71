"""Minima under constraints, with their multipliers: min f(x) where g(x) = 0 and h(x) ≤ 0.

The generalised Lagrangian L = f + Σ λ_i g_i + Σ α_j h_j, α ≥ 0 (Karush, 1939; Kuhn and Tucker, 1951), made convex
around its saddle by a quadratic penalty ρ: minimise over x, move the multipliers by ρ times the violation, and again
(Hestenes, 1969; Rockafellar, 1973). A multiplier says how much f would fall for each unit that its constraint gave way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

_GROWTH, _MOST_PENALTY = 4.0, 1e6  # of ρ, in rounds in which the violation has not fallen to a quarter


@dataclass(frozen=True)
class ConstrainedMinimum:
    """Where the minimum is, and what its constraints cost.

    Attributes
    ----------
    x : the minimum. value : f there.
    equality_multipliers, inequality_multipliers : λ and α; α is 0 for constraints that do not hold it back.
    violation : the largest |g| or positive h left. residual : length of the Lagrangian's slope.
    n_rounds : of multipliers. converged : whether both are below the tolerance.
    """

    x: np.ndarray
    value: float
    equality_multipliers: np.ndarray
    inequality_multipliers: np.ndarray
    violation: float
    residual: float
    n_rounds: int
    converged: bool


def minimise_constrained(
    f: Callable[[Array], Array],
    start: Any,
    *,
    equalities: Callable[[Array], Array] | None = None,
    inequalities: Callable[[Array], Array] | None = None,
    tol: float = 1e-7,
    max_rounds: int = 50,
) -> ConstrainedMinimum:
    """The minimum of f near `start` where equalities(x) = 0 and inequalities(x) ≤ 0, in double precision.

    Parameters
    ----------
    f : (d,) -> scalar, from `jax.numpy`. equalities, inequalities : (d,) -> (m,).

    Examples
    --------
    The point of the circle that is furthest down and left; the multiplier is half the square root of 2:

    >>> found = minimise_constrained(lambda x: x.sum(), [1.0, 0.0], inequalities=lambda x: jnp.array([x @ x - 1]))
    >>> found.x.round(4).tolist(), found.inequality_multipliers.round(4).tolist()
    ([-0.7071, -0.7071], [0.7071])
    """
    from scipy.optimize import minimize

    if max_rounds < 1:
        raise ValueError(f"`max_rounds` must be at least 1, got {max_rounds}.")
    x = np.atleast_1d(np.asarray(start, np.float64))
    with jax.enable_x64(True):
        parts = _Parts(f, equalities, inequalities, x)
        equal, unequal, penalty, before = np.zeros(parts.n_equal), np.zeros(parts.n_unequal), 10.0, np.inf
        n_rounds = 0
        while n_rounds < max_rounds:
            n_rounds += 1
            found = minimize(
                parts.augmented, x, (equal, unequal, penalty), "BFGS", jac=True, options={"gtol": tol / 10}
            )
            x = found.x
            g, h = parts.constraints(x)
            equal = equal + penalty * g
            unequal = np.maximum(0.0, unequal + penalty * h)
            violation = max(np.abs(g).max(initial=0.0), np.maximum(h, 0.0).max(initial=0.0))
            residual = float(np.linalg.norm(parts.slope(x, equal, unequal)))
            # A multiplier of a constraint that has room is not right until it has fallen to 0.
            slack = np.abs(np.minimum(unequal, -h)).max(initial=0.0)
            converged = bool(max(violation, slack) <= tol and residual <= 10 * tol)
            if converged:
                break
            if violation > before / _GROWTH:
                penalty = min(penalty * _GROWTH, _MOST_PENALTY)
            before = violation
        return ConstrainedMinimum(x, float(parts.f(x)), equal, unequal, float(violation), residual, n_rounds, converged)


class _Parts:
    """The compiled parts of a problem, as SciPy wants them."""

    def __init__(self, f: Any, equalities: Any, inequalities: Any, x: np.ndarray) -> None:
        g = (lambda x: jnp.zeros(0)) if equalities is None else equalities
        h = (lambda x: jnp.zeros(0)) if inequalities is None else inequalities
        shapes = [jax.eval_shape(own, x).shape for own in (f, g, h)]
        if shapes[0] != () or len(shapes[1]) != 1 or len(shapes[2]) != 1:
            raise ValueError(f"f must return a number and constraints vectors, got shapes {shapes}.")
        self.n_equal, self.n_unequal = shapes[1][0], shapes[2][0]

        def augmented(x: Array, equal: Array, unequal: Array, penalty: Array) -> Array:
            pushed = jnp.maximum(0.0, unequal + penalty * h(x))
            squares = jnp.sum(g(x) ** 2) * penalty / 2 + jnp.sum(pushed**2 - unequal**2) / (2 * penalty)
            return f(x) + equal @ g(x) + squares

        def lagrangian(x: Array, equal: Array, unequal: Array) -> Array:
            return f(x) + equal @ g(x) + unequal @ h(x)

        self.f = jax.jit(f)
        self._augmented, self._slope = jax.jit(jax.value_and_grad(augmented)), jax.jit(jax.grad(lagrangian))
        self._constraints = jax.jit(lambda x: (g(x), h(x)))

    def augmented(self, x: np.ndarray, equal: Any, unequal: Any, penalty: Any) -> tuple[float, np.ndarray]:
        value, slope = self._augmented(x, equal, unequal, penalty)
        return float(value), np.asarray(slope)

    def constraints(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        g, h = self._constraints(x)
        return np.asarray(g), np.asarray(h)

    def slope(self, x: np.ndarray, equal: np.ndarray, unequal: np.ndarray) -> np.ndarray:
        return np.asarray(self._slope(x, equal, unequal))
