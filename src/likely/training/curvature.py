"""How a loss bends where training stands: extreme eigenvalues of its Hessian, and the best length of a step.

Products H v cost about two gradients each (Pearlmutter, 1994), and Lanczos' method finds both ends of the spectrum from
some dozens of them: the extreme eigenvalues of the tridiagonal matrix, each within |β s| of an eigenvalue of H. Along
the gradient g the loss falls the most, to second order, for a step of gᵀg / gᵀH g.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from likely.training.batches import Batch, check_rows


@dataclass(frozen=True)
class Curvature:
    """What the loss is like around some parameters.

    Attributes
    ----------
    loss : its value. gradient : (p,) its slopes.
    largest, smallest : extreme eigenvalues of the Hessian as found; an eigenvalue is within `largest_error`,
        `smallest_error` of each. They approach the true extremes from inside.
    condition : ratio of the largest and the smallest eigenvalue by size; infinite where the Hessian is not definite.
    best_step : gᵀg / gᵀH g; infinite where the loss does not bend upwards along its gradient.
    eigenvalues : of the tridiagonal matrix, in rising order; all eigenvalues of H if there are p of them.
    multiply : v (p,) -> H v (p,).
    """

    loss: float
    gradient: np.ndarray
    largest: float
    smallest: float
    largest_error: float
    smallest_error: float
    best_step: float
    eigenvalues: np.ndarray
    multiply: Callable[[np.ndarray], np.ndarray]

    @property
    def condition(self) -> float:
        """Largest by smallest eigenvalue, where both have one sign."""
        low, high = sorted((abs(self.smallest), abs(self.largest)))
        definite = self.smallest * self.largest > 0
        return high / low if definite and low > 0 else np.inf

    def __str__(self) -> str:
        return (
            f"eigenvalues {self.smallest:.4g} (± {self.smallest_error:.1g}) to {self.largest:.4g} "
            f"(± {self.largest_error:.1g}), condition {self.condition:.4g}, best step {self.best_step:.4g}"
        )


def curvature(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    objective: Any = None,
    key: Array | None = None,
    state: Any = None,
    n_products: int = 60,
) -> Curvature:
    """The curvature of a loss over all given rows at once.

    Parameters
    ----------
    model : a fitted estimator that `train` has trained: its loss on X (and y) is the one that its `fit` minimises, at
        the parameters that it has. Or, with an `objective`, any module.
    X : rows; what `fit` takes, or a matrix of numbers with NaN where unobserved.
    objective : (module, batch, key, state) -> (loss, (state, metrics)), as `train` takes it.
    key : for objectives that draw: one draw, held fixed, is what bends. By default key 0.
    n_products : products H v, at most as many as there are parameters.

    Examples
    --------
    ½ (θ₁² + 100 θ₂²), whose eigenvalues are 1 and 100:

    >>> def bowl(theta, batch, key, state):
    ...     return 0.5 * (theta[0] ** 2 + 100 * theta[1] ** 2), (state, {})
    >>> found = curvature(jnp.array([1.0, 0.1]), np.zeros((1, 1)), objective=bowl)
    >>> round(found.smallest, 3), round(found.largest, 3), round(found.condition, 2), round(found.best_step, 4)
    (1.0, 100.0, 100.0, 0.0101)
    """
    module, objective, rows, state = (model, objective, X, state) if objective is not None else _problem_of(model, X, y)
    if n_products < 1:
        raise ValueError(f"`n_products` must be at least 1, got {n_products}.")
    key = jax.random.key(0) if key is None else key
    loss, gradient, multiply = _derivatives(module, objective, _whole(rows, module), key, state)
    values, errors = lanczos(multiply, len(gradient), min(n_products, len(gradient)))
    bend = float(gradient @ multiply(gradient))
    length = float(gradient @ gradient)
    return Curvature(
        loss=loss,
        gradient=gradient,
        largest=float(values[-1]),
        smallest=float(values[0]),
        largest_error=float(errors[-1]),
        smallest_error=float(errors[0]),
        best_step=length / bend if bend > 0 else np.inf,
        eigenvalues=values,
        multiply=multiply,
    )


def lanczos(
    multiply: Callable[[np.ndarray], np.ndarray], size: int, n_products: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of the tridiagonal matrix, rising, and how far an eigenvalue of the symmetric matrix is at most.

    Vectors are made orthogonal to all before, twice: in floating point the three-term recurrence forgets to be.
    """
    start = np.random.default_rng(seed).normal(size=size)
    basis = [start / np.linalg.norm(start)]
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(n_products):
        new = np.asarray(multiply(basis[-1]), np.float64)
        diagonal.append(float(basis[-1] @ new))
        known = np.array(basis)
        for _ in range(2):
            new = new - known.T @ (known @ new)
        beside.append(float(np.linalg.norm(new)))
        # A rest this small is rounding: the vectors so far span all that H makes of the start.
        if beside[-1] <= 1e-10 * max(map(abs, diagonal)) or len(basis) == size:
            beside[-1] = 0.0
            break
        basis.append(new / beside[-1])
    n = len(diagonal)
    matrix = np.diag(diagonal) + np.diag(beside[: n - 1], 1) + np.diag(beside[: n - 1], -1)
    values, vectors = np.linalg.eigh(matrix)
    return values, beside[-1] * np.abs(vectors[-1])


def _derivatives(
    module: Any, objective: Any, batch: Batch, key: Array, state: Any
) -> tuple[float, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Loss, gradient and the product with the Hessian, in the parameters as one vector."""
    params, rest = eqx.partition(module, eqx.is_inexact_array)
    flat, unravel = ravel_pytree(params)
    if flat.size == 0:
        raise ValueError("the module has no floating-point arrays: there is nothing that bends.")

    def loss_of(flat: Array) -> Array:
        return objective(eqx.combine(unravel(flat), rest), batch, key, state)[0]

    value, gradient = jax.jit(jax.value_and_grad(loss_of))(flat)
    product = jax.jit(lambda v: jax.jvp(jax.grad(loss_of), (flat,), (v,))[1])

    def multiply(v: np.ndarray) -> np.ndarray:
        return np.asarray(product(jnp.asarray(v, flat.dtype)), np.float64)

    return float(value), np.asarray(gradient, np.float64), multiply


def _whole(rows: Any, module: Any) -> Batch:
    """All rows as one batch."""
    rows = check_rows(rows)
    leaves = [leaf for leaf in jax.tree.leaves(module) if eqx.is_inexact_array(leaf)]
    dtype = np.result_type(np.float32, *(leaf.dtype for leaf in leaves))
    observed = ~np.isnan(rows)
    x = np.where(observed, rows, 0).astype(dtype)
    return Batch(x, None if observed.all() else observed, np.ones(len(rows), dtype))


# ------------------------------------------------------------------ the loss that an estimator's fit minimises
class _Asked(BaseException):
    """Raised by `train` in place of any work, with what it was given; not for `except Exception` on the way."""

    def __init__(self, module: Any, objective: Any, rows: Any, state: Any) -> None:
        self.problem = module, objective, rows, state


_asking: ContextVar[bool] = ContextVar("likely_asking_for_the_loss", default=False)


def hand_over(module: Any, objective: Any, rows: Any, state: Any) -> None:
    """Break off if somebody only asks what would be minimised; `train` calls it first."""
    if _asking.get():
        raise _Asked(module, objective, rows, state)


@contextmanager
def _only_asking() -> Iterator[None]:
    token = _asking.set(True)
    try:
        yield
    finally:
        _asking.reset(token)


def _problem_of(model: Any, X: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Parameters of a fitted estimator, and the objective and rows that its `fit` of these data hands to `train`."""
    from sklearn.base import clone

    params = getattr(model, "params_", None)
    if params is None:
        raise TypeError("`model` must be a fitted estimator, or a module together with its `objective`.")
    asked: tuple[Any, Any, Any, Any] | None = None
    with _only_asking():
        try:
            clone(model).fit(X) if y is None else clone(model).fit(X, y)
        except _Asked as stopped:
            asked = stopped.problem
    name = type(model).__name__
    if asked is None:
        raise ValueError(f"{name} is not trained by gradient: give a module and its `objective`.")
    module, objective, rows, state = asked
    if not _alike(module, params):
        raise ValueError(
            f"{name} keeps other parameters than those that its first training minimises over: give the module and "
            "its `objective`."
        )
    return params, objective, rows, state


def _alike(a: Any, b: Any) -> bool:
    """Whether two modules have the same arrays in the same places."""
    shapes = [
        [(jax.tree_util.keystr(path), jnp.shape(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(own)]
        for own in (a, b)
    ]
    return shapes[0] == shapes[1]
