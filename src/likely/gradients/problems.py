"""A problem ∇_θ E_{p(z; θ)}[f(z)] small enough to be exact, and the measuring of an estimator on it.

`measure` reports bias against the exact gradient with its z-score, variance and seconds in one call; `descend` follows
an estimate downhill. Cost of a measurement: `n_draws` gradients, in blocks of a bounded size.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Key

from likely.gradients.distributions import Family
from likely.gradients.enumeration import Enumeration
from likely.gradients.estimator import Estimator, Objective, check_suits
from likely.gradients.names import make_estimator
from likely.montecarlo.enumeration import MAX_CONFIGURATIONS, configurations
from likely.runtime import float_dtype

_GRADIENTS_AT_ONCE = 4096  # so that memory is bounded, however many are asked for
# Standard errors beyond which a bias is taken for one: four happen by chance once in 16,000 coordinates.
_MAX_Z_SCORE = 4.0


class Problem(eqx.Module):
    """An expectation to differentiate.

    Parameters
    ----------
    family : p(z; ·).
    f : draws (n, ...) -> values (n,), from `jax.numpy`.
    theta : where to differentiate, a pytree of arrays.
    link : theta -> the family's parameters; none by default.
    """

    family: Family
    f: Objective = eqx.field(static=True)
    theta: Any
    link: Callable[[Any], Any] = eqx.field(default=lambda theta: theta, static=True)


@dataclass(frozen=True)
class Measured:
    """An estimator's figures on a problem; gradients as flat vectors.

    mean, exact : the mean of the estimates, and the gradient.
    stderr : standard error of `mean`. variance : of one estimate, summed over the coordinates.
    seconds : for one estimate, when many are made together.
    """

    estimator: str
    n_draws: int
    n_samples: int
    mean: np.ndarray
    exact: np.ndarray
    stderr: np.ndarray
    variance: float
    seconds: float

    @property
    def bias(self) -> np.ndarray:
        """Mean estimate less the exact gradient."""
        return self.mean - self.exact

    @property
    def z_scores(self) -> np.ndarray:
        """Bias in standard errors, those of rounding included."""
        # An estimator without variance has no standard error either, and would be biased by its last bit.
        rounding = 64 * np.finfo(np.dtype(float_dtype())).eps * (1 + np.abs(self.exact).max())
        return self.bias / np.sqrt(self.stderr**2 + rounding**2)

    @property
    def is_unbiased(self) -> bool:
        """Whether no coordinate's bias is beyond four standard errors."""
        return bool(np.abs(self.z_scores).max() < _MAX_Z_SCORE)

    def __str__(self) -> str:
        return (
            f"{self.estimator}: |bias| {np.linalg.norm(self.bias):.2g} (largest |z| {np.abs(self.z_scores).max():.1f}),"
            f" variance {self.variance:.3g}, {1e6 * self.seconds:.2g} µs a gradient"
        )


def gradient(
    key: Key[Array, ""], estimator: Estimator, problem: Problem, theta: Any, n: int, state: Any
) -> tuple[Any, Any]:
    """One estimate at θ, a pytree like θ, and the estimator's next state."""

    def surrogate(theta):
        return estimator.surrogate(key, problem.family, problem.link(theta), problem.f, n, state)

    return jax.grad(surrogate, has_aux=True)(theta)


def exact_gradient(problem: Problem, theta: Any, *, n: int = 1, of_bound: bool = False) -> Any:
    """The gradient by enumeration or quadrature; with `of_bound` that of E log (1/n) Σ exp f(z_s)."""

    def value(theta):
        own = problem.link(theta)
        if not of_bound:
            return Enumeration().surrogate(jax.random.key(0), problem.family, own, problem.f, 1, None)[0]
        z, weights = problem.family.support(own)
        if len(weights) ** n > MAX_CONFIGURATIONS:
            raise ValueError(f"{len(weights)} configurations of {n} draws are too many to sum over: take fewer.")
        whose = configurations(jnp.arange(len(weights) ** n), (len(weights),) * n)
        bounds = jax.nn.logsumexp(problem.f(z)[whose], axis=1) - jnp.log(jnp.asarray(n, weights.dtype))
        return (weights[whose].prod(axis=1) * bounds).sum()

    return jax.grad(value)(theta)


def measure(
    estimator: str | Estimator,
    problem: Problem,
    *,
    n_draws: int = 200_000,
    n_samples: int | None = None,
    n_warmup: int = 300,
    seed: int = 0,
) -> Measured:
    """Bias, variance and cost of an estimator on a problem.

    Parameters
    ----------
    estimator : a name in `ESTIMATORS`, or an estimator.
    n_draws : independent estimates.
    n_samples : draws of z behind each; by default as few as the estimator can do with.
    n_warmup : estimates before, from which baselines learn; they stay as they are while it is measured.
    seed : of all draws.

    Examples
    --------
    >>> from likely.gradients import Bernoulli
    >>> problem = Problem(Bernoulli(), lambda z: (z.sum(axis=-1) - 0.45) ** 2, jnp.array([0.5, -1.0]))
    >>> measure("straight_through", problem, n_draws=10_000).is_unbiased
    False
    """
    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    estimator = make_estimator(estimator)
    n = estimator.fewest if n_samples is None else n_samples
    check_suits(estimator, problem.family, n)
    if n_draws < 2:
        raise ValueError(f"`n_draws` must be at least 2, got {n_draws}: one estimate has no variance.")
    exact = _flat_exact(problem, n if estimator.of_bound else 1, estimator.of_bound)
    warmup_key, key = jax.random.split(jax.random.key(seed))
    state = estimator.start(warmup_key)
    if state is not None:
        state = _warm(warmup_key, estimator, problem, state, n, n_warmup)
    block = min(n_draws, _GRADIENTS_AT_ONCE)
    # There is one θ for each estimate, all alike: else what does not depend on the draws would be done once for all.
    thetas = jax.tree.map(lambda a: jnp.repeat(a[None], block, axis=0), problem.theta)
    work = partial(_moments, key, estimator, problem, thetas, exact, state, n)
    offs, squares, seconds = _timed(work, -(-n_draws // block))
    total = -(-n_draws // block) * block
    bias = offs / total
    variance = (squares - total * bias**2) / (total - 1)
    return Measured(
        estimator=name,
        n_draws=total,
        n_samples=n,
        mean=np.asarray(exact) + bias,
        exact=np.asarray(exact),
        stderr=np.sqrt(np.maximum(variance, 0) / total),
        variance=float(variance.sum()),
        seconds=seconds / total,
    )


def _timed(work: Callable[[Array], tuple[Array, Array]], n_blocks: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Both sums that `work` makes of so many blocks, and its seconds without the compiler's."""
    jax.block_until_ready(work(jnp.asarray(1)))  # The number of blocks is an input: this compiles it for any.
    began = time.perf_counter()
    offs, squares = (np.asarray(sums, np.float64) for sums in work(jnp.asarray(n_blocks)))
    return offs, squares, time.perf_counter() - began


def descend(
    key: Key[Array, ""],
    estimator: Estimator,
    problem: Problem,
    *,
    n_steps: int,
    learning_rate: float,
    n_samples: int | None = None,
) -> Any:
    """The path of θ, (n_steps + 1, ...), down the estimated gradient in plain steps."""
    n = estimator.fewest if n_samples is None else n_samples
    check_suits(estimator, problem.family, n)
    return _descend(key, estimator, problem, learning_rate, n_steps, n)


@eqx.filter_jit
def _flat_exact(problem: Problem, n: int, of_bound: bool) -> Float[Array, " p"]:
    return ravel_pytree(exact_gradient(problem, problem.theta, n=n, of_bound=of_bound))[0]


@eqx.filter_jit
def _warm(key: Array, estimator: Estimator, problem: Problem, state: Any, n: int, n_warmup: int) -> Any:
    """The state after so many estimates in the same place."""
    keys = jax.random.split(key, n_warmup)

    def step(state: Any, key: Array) -> tuple[Any, None]:
        return gradient(key, estimator, problem, problem.theta, n, state)[1], None

    return lax.scan(step, state, keys)[0]


@eqx.filter_jit
def _moments(key, estimator, problem, thetas, exact, state, n: int, n_blocks: Array) -> tuple[Array, Array]:
    """Sums of the estimates' distances to the exact gradient, and of their squares.

    About the exact gradient and not about 0, so that a small variance is not the difference of two large sums.
    """
    block = len(jax.tree.leaves(thetas)[0])

    def one(key, theta):
        estimate, _ = gradient(key, estimator, problem, theta, n, state)
        return ravel_pytree(estimate)[0] - exact

    def add(i, sums):
        off = jax.vmap(one)(jax.random.split(jax.random.fold_in(key, i), block), thetas)
        return sums[0] + off.sum(axis=0), sums[1] + (off**2).sum(axis=0)

    return lax.fori_loop(0, n_blocks, add, (jnp.zeros_like(exact), jnp.zeros_like(exact)))


@eqx.filter_jit
def _descend(key, estimator, problem, learning_rate, n_steps: int, n: int) -> Any:
    start_key, key = jax.random.split(key)

    def step(carry, key):
        theta, state = carry
        slope, state = gradient(key, estimator, problem, theta, n, state)
        theta = jax.tree.map(lambda t, s: t - learning_rate * s, theta, slope)
        return (theta, state), theta

    start = (problem.theta, estimator.start(start_key))
    path = lax.scan(step, start, jax.random.split(key, n_steps))[1]
    return jax.tree.map(lambda first, rest: jnp.concatenate([first[None], rest]), problem.theta, path)
