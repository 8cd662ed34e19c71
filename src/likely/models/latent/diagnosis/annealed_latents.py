"""Annealing over the latents of a decoder: log p(x) = log ∫ p(z) p(x | z) dz by chains that Hamiltonian moves carry.

Wu, Burda, Salakhutdinov and Grosse (2017). A path leads from a density whose integral is 1 to the joint density of the
row and its latents, log f_t(u) = log f_0(u) + t log w(u), so that the mean weight at its end has expectation p(x), and
its logarithm is a lower bound on average. It begins at q(z | x), where u is the noise that q makes a sample of, and w
the importance weight; then it can only improve on importance sampling. Or at the prior, where u is z and w is p(x | z):
from there a chain can also be sent back from an exact sample of p(z | x), which gives an upper bound on average.

Step sizes are fixed before the weights are counted, by a pilot run of each row for itself, since chains that adapt
while they are weighed bias the estimate. Every row has the same noise. Cost: rows × chains × temperatures × leapfrog
steps gradients of the decoder, and a quarter more for the pilot.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.montecarlo import annealed_importance, log_mean_weight
from likely.montecarlo.ais import replicate_log_mean

Start = Literal["posterior", "prior"]
ROWS_AT_ONCE = 64  # whose chains are alive together: memory grows with rows × chains × the decoder's layers
N_REPLICATES = 16  # of an evidence, from its chains
ACCEPTANCE = 0.65  # that step sizes aim at: the best for Hamiltonian moves in many dimensions (Beskos et al., 2013)
# The pilot's step sizes start here, and e to this times (acceptance - ACCEPTANCE) multiplies them after each move.
_FIRST_STEP_SIZE, _ADAPTATION_RATE = 0.5, 0.5
# Limits of step sizes: a row whose first moves are all refused, or all accepted, is to keep a usable one.
_STEP_SIZE_LIMITS = (1e-4, 2.0)
_SIGMOID_ENDS = 4.0  # The schedule is a sigmoid from -4 to 4, as Wu et al. have it.


class Effort(NamedTuple):
    """How much work goes into annealing; static."""

    n_temperatures: int
    n_chains: int
    n_leapfrog: int

    def __str__(self) -> str:
        return f"{self.n_temperatures} temperatures, {self.n_chains} chains, {self.n_leapfrog} leapfrog steps"


class _Rows(NamedTuple):
    """Rows, and the recognition network's answers to them."""

    x: Float[Array, "n d"]
    observed: Bool[Array, "n d"] | None
    answer: Float[Array, "n a"]


@eqx.filter_jit
def anneal(
    key: Key[Array, ""], module: Any, x: Array, observed: Array | None, *, start: Start, effort: Effort
) -> Float[Array, "n c"]:
    """Log weights of each row's chains, from the start of the path to its end."""
    begin, move, pilot = jax.random.split(key, 3)
    rows, stops = _Rows(x, observed, module.recognise(x, observed)), _schedule(effort.n_temperatures, x.dtype)
    chains = _first(begin, module, start, effort.n_chains, x.dtype)
    chains = jnp.broadcast_to(chains[None], (len(x), *chains.shape))
    sizes = _step_sizes(pilot, module, rows, chains[:, : max(1, effort.n_chains // 4)], stops, start, effort)
    return _weigh(move, module, rows, chains, stops, sizes, start, effort)


@eqx.filter_jit
def anneal_back(
    key: Key[Array, ""], module: Any, x: Array, observed: Array | None, z: Float[Array, "n k"], *, effort: Effort
) -> Float[Array, "n c"]:
    """Log weights of chains that go from an exact sample z of p(z | x) back to the prior: of 1 / p(x)."""
    move, pilot = jax.random.split(key)
    rows = _Rows(x, observed, module.recognise(x, observed))
    stops = _schedule(effort.n_temperatures, x.dtype)[::-1]
    chains = jnp.broadcast_to(z[:, None, :], (len(z), effort.n_chains, z.shape[1]))
    sizes = _step_sizes(pilot, module, rows, chains[:, : max(1, effort.n_chains // 4)], stops, "prior", effort)
    return _weigh(move, module, rows, chains, stops, sizes, "prior", effort)


def summed(log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log mean weight (n,) of each row's chains (n, c), and replicates (n, r) of it."""
    by_chain = np.asarray(log_weights).T
    return log_mean_weight(by_chain), replicate_log_mean(by_chain, N_REPLICATES).T


def _first(key: Array, module: Any, start: Start, n: int, dtype: Any) -> Float[Array, "c k"]:
    if start == "posterior":
        return jax.random.normal(key, (n, module.n_latent), dtype)
    return module.prior().sample(key, n, module.n_latent, dtype)


def _schedule(n: int, dtype: Any) -> Float[Array, " t"]:
    """Stops from 0 to 1, close to each other at both ends."""
    s = jax.nn.sigmoid(_SIGMOID_ENDS * jnp.linspace(-1, 1, n + 1, dtype=dtype))
    return (s - s[0]) / (s[-1] - s[0])


def _log_parts(module: Any, rows: _Rows, u: Float[Array, "n c k"], start: Start) -> tuple[Array, Array]:
    """Log f_0(u) and log w(u), each (n, c)."""
    if start == "prior":
        return module.prior().log_prob(u), module.log_likelihood(rows.x, rows.observed, u)
    z, log_q = module.posterior(rows.answer).sample(u)
    base = -0.5 * (u**2).sum(axis=-1) - 0.5 * u.shape[-1] * math.log(2 * math.pi)
    return base, module.log_likelihood(rows.x, rows.observed, z) + module.prior().log_prob(z) - log_q


def _move(
    key: Array, module: Any, rows: _Rows, chains: Array, at: Array, sizes: Array, start: Start, effort: Effort
) -> tuple[Float[Array, "n c k"], Float[Array, "n c"]]:
    """A Hamiltonian move of every chain, with its row's step size; and how readily it was accepted."""
    import blackjax

    step = blackjax.hmc.build_kernel()

    def one(key: Array, u: Array, row: _Rows, size: Array) -> tuple[Array, Array]:
        alone = jax.tree.map(lambda a: a[None], row)

        def log_density(u: Array) -> Array:
            base, weight = _log_parts(module, alone, u[None, None], start)
            return (base + at * weight)[0, 0]

        state = blackjax.hmc.init(u, log_density)
        state, info = step(key, state, log_density, size, jnp.ones_like(u), effort.n_leapfrog)
        return state.position, info.acceptance_rate

    chains_of_a_row = jax.vmap(one, in_axes=(0, 0, None, None))
    # Every row has the same keys, so that its evidence is a function of the row and the seed alone.
    keys = jax.random.split(key, chains.shape[1])
    return jax.vmap(chains_of_a_row, in_axes=(None, 0, 0, 0))(keys, chains, rows, sizes)


def _step_sizes(
    key: Array, module: Any, rows: _Rows, chains: Array, stops: Array, start: Start, effort: Effort
) -> Float[Array, "t n"]:
    """Step sizes of each row at each stop, that a pilot run adapts towards `ACCEPTANCE`."""

    def advance(carry: tuple[Array, Array], i: Array) -> tuple[tuple[Array, Array], Array]:
        chains, sizes = carry
        chains, rates = _move(jax.random.fold_in(key, i), module, rows, chains, stops[i], sizes, start, effort)
        sizes = sizes * jnp.exp(_ADAPTATION_RATE * (jnp.nan_to_num(rates.mean(axis=1)) - ACCEPTANCE))
        sizes = jnp.clip(sizes, *_STEP_SIZE_LIMITS)
        return (chains, sizes), sizes

    first = jnp.full(len(rows.answer), _FIRST_STEP_SIZE, chains.dtype)
    return lax.scan(advance, (chains, first), jnp.arange(len(stops)))[1]


def _weigh(
    key: Array, module: Any, rows: _Rows, chains: Array, stops: Array, sizes: Array, start: Start, effort: Effort
) -> Float[Array, "n c"]:
    def log_ratio(chains: Array, before: Array, after: Array) -> Array:
        return (stops[after] - stops[before]) * _log_parts(module, rows, chains, start)[1]

    def kernel(key: Array, chains: Array, number: Array) -> Array:
        return _move(key, module, rows, chains, stops[number], sizes[number], start, effort)[0]

    return annealed_importance(key, chains, jnp.arange(len(stops)), log_ratio, kernel)
