"""Hamiltonian Monte Carlo, NUTS and Langevin kernels for densities of real vectors, by BlackJAX.

Neal (2011); Hoffman and Gelman (2014); Roberts and Tweedie (1996). A kernel moves positions (n_chains, d), all chains
at once; log densities take one position (d,), unnormalised, and need gradients. Step size and mass matrix are adapted
in windows as Stan does, each chain for itself, then shared, so that the kernel that draws is fixed. Cost: a gradient
for each leapfrog step, one more a kernel step, and two seconds once to load BlackJAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Key

from likely.montecarlo.gibbs import Kernel

LogDensity = Callable[[Array], Array]  # (d,) -> ()
Algorithm = Literal["nuts", "hmc"]


class Tuned(NamedTuple):
    """What adaptation found: a step size, the diagonal of the inverse mass matrix, and where the chains are."""

    step_size: Float[Array, ""]
    inverse_mass: Float[Array, " d"]
    chains: Float[Array, "n_chains d"]


class Draws(NamedTuple):
    """Draws (n_chains, n_draws, d), mean acceptance of each chain, divergent steps in all, and what drew them."""

    draws: np.ndarray
    acceptance: np.ndarray
    n_divergent: int
    tuned: Tuned


def hmc_kernel(log_density: LogDensity, *, step_size: Any, inverse_mass: Any, n_leapfrog: int = 10) -> Kernel:
    """Hamiltonian Monte Carlo with a fixed number of leapfrog steps."""
    import blackjax

    step = blackjax.hmc.build_kernel()
    return _many(blackjax.hmc.init, log_density, lambda key, state: step(
        key, state, log_density, step_size, jnp.asarray(inverse_mass), n_leapfrog
    ))  # fmt: skip


def nuts_kernel(log_density: LogDensity, *, step_size: Any, inverse_mass: Any, max_doublings: int = 10) -> Kernel:
    """HMC whose trajectories end where they turn back."""
    import blackjax

    step = blackjax.nuts.build_kernel()
    return _many(blackjax.nuts.init, log_density, lambda key, state: step(
        key, state, log_density, step_size, jnp.asarray(inverse_mass), max_doublings
    ))  # fmt: skip


def langevin_kernel(log_density: LogDensity, *, step_size: Any) -> Kernel:
    """Metropolis-adjusted Langevin: x + s ∇log p(x) + √(2s) noise, accepted or not.

    Examples
    --------
    >>> from likely.montecarlo import run_chains
    >>> kernel = langevin_kernel(lambda x: -0.5 * jnp.sum((x / 3) ** 2), step_size=3.0)
    >>> chains = run_chains(jax.random.key(0), kernel, jnp.zeros((4000, 1)), 60)
    >>> bool(abs(chains.std() - 3) < 0.2)
    True
    """
    import blackjax

    step = blackjax.mala.build_kernel()
    return _many(blackjax.mala.init, log_density, lambda key, state: step(key, state, log_density, step_size))


def adapt(
    key: Key[Array, ""],
    log_density: LogDensity,
    chains: Float[Array, "n_chains d"],
    n_steps: int = 500,
    *,
    algorithm: Algorithm = "nuts",
    n_leapfrog: int = 10,
    acceptance: float = 0.8,
) -> Tuned:
    """Step size and mass matrix by window adaptation from each chain; the chains' median and mean serve all."""
    _check(log_density, chains)
    if n_steps < 20:
        raise ValueError(f"`n_steps` must be at least 20, got {n_steps}: adaptation works in windows.")
    return _adapt(key, log_density, chains, n_steps, algorithm, n_leapfrog, acceptance)


def sample_hmc(
    key: Key[Array, ""],
    log_density: LogDensity,
    chains: Float[Array, "n_chains d"],
    n_draws: int,
    *,
    n_warmup: int = 500,
    algorithm: Algorithm = "nuts",
    n_leapfrog: int = 10,
) -> Draws:
    """Adapt, then draw: the usual way to sample a density of real vectors.

    Parameters
    ----------
    key : randomness.
    log_density : (d,) -> (), unnormalised.
    chains : where they start, each somewhere else if R-hat is to mean anything.
    n_draws, n_warmup : kept, and spent on adaptation, per chain.
    algorithm, n_leapfrog : "nuts", or "hmc" with so many leapfrog steps.
    """
    warm, go = jax.random.split(key)
    tuned = adapt(warm, log_density, chains, n_warmup, algorithm=algorithm, n_leapfrog=n_leapfrog)
    draws, rates, divergent = _draw(go, log_density, tuned, n_draws, algorithm, n_leapfrog)
    return Draws(np.asarray(draws), np.asarray(rates), int(divergent), tuned)


def _many(init: Callable, log_density: LogDensity, step: Callable) -> Kernel:
    """A kernel on the positions of many chains from BlackJAX's on one state."""

    def kernel(key: Key[Array, ""], chains: Float[Array, "n_chains d"]) -> Float[Array, "n_chains d"]:
        def one(key: Array, position: Array) -> Array:
            return step(key, init(position, log_density))[0].position

        return jax.vmap(one)(jax.random.split(key, len(chains)), chains)

    return kernel


def _algorithm(name: str, n_leapfrog: int) -> tuple[Any, dict[str, int]]:
    import blackjax

    if name not in ("nuts", "hmc"):
        raise ValueError(f'`algorithm` must be "nuts" or "hmc", got {name!r}.')
    return (blackjax.nuts, {}) if name == "nuts" else (blackjax.hmc, {"num_integration_steps": n_leapfrog})


@eqx.filter_jit
def _adapt(key, log_density, chains, n_steps, algorithm, n_leapfrog, acceptance) -> Tuned:
    import blackjax

    method, extra = _algorithm(algorithm, n_leapfrog)
    warmup = blackjax.window_adaptation(method, log_density, target_acceptance_rate=acceptance, **extra)

    def one(key: Array, position: Array) -> tuple[Array, Array, Array]:
        result, _ = warmup.run(key, position, n_steps)
        return result.parameters["step_size"], result.parameters["inverse_mass_matrix"], result.state.position

    sizes, masses, ends = jax.vmap(one)(jax.random.split(key, len(chains)), chains)
    return Tuned(jnp.median(sizes), masses.mean(axis=0), ends)


@eqx.filter_jit
def _draw(key, log_density, tuned, n_draws, algorithm, n_leapfrog) -> tuple[Array, Array, Array]:
    method, extra = _algorithm(algorithm, n_leapfrog)
    step = method(log_density, step_size=tuned.step_size, inverse_mass_matrix=tuned.inverse_mass, **extra).step

    def one(key: Array, position: Array) -> tuple[Array, Array, Array]:
        def move(state: Any, i: Array) -> tuple[Any, tuple[Array, Array, Array]]:
            state, info = step(jax.random.fold_in(key, i), state)
            return state, (state.position, info.acceptance_rate, info.is_divergent)

        return lax.scan(move, method.init(position, log_density), jnp.arange(n_draws))[1]

    draws, rates, divergent = jax.vmap(one)(jax.random.split(key, len(tuned.chains)), tuned.chains)
    return draws, rates.mean(axis=1), divergent.sum()


def _check(log_density: LogDensity, chains: Any) -> None:
    if jnp.ndim(chains) != 2:
        raise ValueError(f"`chains` must be (n_chains, d), got shape {jnp.shape(chains)}.")
    values = np.asarray(jax.vmap(log_density)(chains))
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"`log_density` must be finite where chains start, got {values[place]} at chain {place}: start elsewhere."
        )
