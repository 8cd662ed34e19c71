"""Chains for p_t(x) ∝ ρ(x) exp(t g(x)), any columns: each step makes one of the moves that the columns admit.

Real cells: Hamiltonian Monte Carlo of a few leapfrog steps (one is Langevin's). Binary cells: Gibbs with gradients
(Grathwohl et al., 2021), which flips the cell that a first-order guess finds most worth it, or, as often, its parallel
form, which may flip any number (Zhang, Liu and Liu, 2022). Categorical cells and counts: one cell to another value.
Each is corrected by Metropolis and Hastings, so that it leaves p_t unchanged and is reversible; so is their random
choice. BlackJAX has the first of these for one chain at a time; here a network sees all chains at once, rows that are
worked on together share their noise, and what the network said of a state is kept with it, whatever t comes next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.models.energy.network.function import EnergyParams, Kind, log_reference, tilt

# Leapfrog steps of a move: a few carry a chain further than as many Langevin moves, each of which would forget where it
# was heading; many would be wasted on chains that are still being annealed.
N_LEAPFROG = 4

# The acceptance that step sizes are tuned to: 0.651 is the best for Hamiltonian Monte Carlo in many dimensions (Beskos
# and others, 2013), 0.574 for one Langevin step; the curve is flat about both.
TARGET_ACCEPTANCE = 0.65

# Range of the log step about the tuned one: long and short steps in turn, so that no direction whose period a step
# happens to match is stuck; mostly shorter, since a step that is too long is refused.
_JITTER = (-1.2, 0.3)

# Log step sizes stay in this range, far beyond what any energy in standard units asks for, so that chains whose every
# move is refused (or taken) do not tune them away.
_LOG_STEP_LIMITS = (-7.0, 2.0)

_NEVER = -1e9  # a logit that is as good as -inf, but finite, so that a row without a movable cell makes no NaN


class Chains(NamedTuple):
    """States of some chains, with log ρ and g there and their gradients."""

    x: Float[Array, "n d"]
    log_base: Float[Array, " n"]
    tilt: Float[Array, " n"]
    base_slope: Float[Array, "n d"]
    tilt_slope: Float[Array, "n d"]

    def value(self, at: Array) -> Float[Array, " n"]:
        """Log p_t, unnormalised."""
        return self.log_base + at * self.tilt

    def slope(self, at: Array) -> Float[Array, "n d"]:
        """Its gradient."""
        return self.base_slope + at * self.tilt_slope


class Target(NamedTuple):
    """The density p_t that chains follow, the cells that they may move, and how far."""

    params: EnergyParams
    kind: Kind
    free: Bool[Array, "n d"] | None  # None: all
    at: Float[Array, ""]
    log_steps: Float[Array, " 2"]

    def movable(self, kinds: tuple[str, ...], x: Array) -> Bool[Array, "n d"]:
        """Free cells of these kinds of columns."""
        own = jnp.broadcast_to(jnp.asarray(np.isin(self.kind.columns.kinds, kinds)), x.shape)
        return own if self.free is None else own & self.free


class Variates(NamedTuple):
    """All uniform variates of one step, from one call: each further one would compile for a third of a second.

    Rows that are worked on together have the same ones, unless each has a key of its own.
    """

    first: Float[Array, "n d"]
    second: Float[Array, "n d"]
    decide: Float[Array, " n"]
    of_step: Float[Array, " 3"]  # which sort of move, which jump, what step size; the same for all chains

    @classmethod
    def draw(
        cls, key: Key[Array, ""], x: Float[Array, "n d"], n_noise: int, own: Key[Array, " r"] | None = None
    ) -> Variates:
        """For n chains from one key, the first `n_noise` of them with noise of their own, which the others use again.

        With r keys of rows, of n / r chains each, every chain has its own; only `of_step` is common to all.
        """
        d = x.shape[1]
        if own is not None:
            # The key of a step is folded into those of rows by its bits, so that no noise comes again in another step.
            which, common = jax.random.split(key)
            keys = jax.vmap(jax.random.fold_in, (0, None))(own, jax.random.bits(which, (), jnp.uint32))
            shape, tiny = (len(x) // len(own), 2 * d + 1), jnp.finfo(x.dtype).tiny
            drawn = jax.vmap(lambda k: jax.random.uniform(k, shape, x.dtype, minval=tiny))(keys)
            full = drawn.reshape(len(x), 2 * d + 1)
            of_step = jax.random.uniform(common, (3,), x.dtype, minval=tiny)
            return cls(full[:, :d], full[:, d : 2 * d], full[:, 2 * d], of_step)
        uniform = jax.random.uniform(key, (n_noise, 2 * d + 4), x.dtype, minval=jnp.finfo(x.dtype).tiny)
        full = uniform if n_noise == len(x) else jnp.tile(uniform, (len(x) // n_noise, 1))
        return cls(full[:, :d], full[:, d : 2 * d], full[:, 2 * d], uniform[0, 2 * d + 1 :])

    def step(self, log_step: Array) -> Array:
        """A step size about a given one."""
        low, high = _JITTER
        return jnp.exp(log_step + low + (high - low) * self.of_step[2])


class Jump(NamedTuple):
    """A move in discrete cells, in two parts, so that the network looks at the proposals of all of them in one place.

    propose : (variates, chains, target) -> rows, and the cells that were chosen.
    correct : (variates, chains, there, chosen, target) -> what the ways back and there add to the log odds.
    """

    propose: Callable[[Variates, Chains, Target], tuple[Array, Array]]
    correct: Callable[[Variates, Chains, Chains, Array, Target], Array]


def look(params: EnergyParams, x: Float[Array, "n d"], kind: Kind) -> Chains:
    """Log ρ and g of rows, and their gradients in the rows."""

    def total(function: Callable[..., Array], rows: Array) -> tuple[Array, Array]:
        values = function(params, rows, kind)
        return values.sum(), values

    slopes, values = [], []
    for function in (log_reference, tilt):
        slope, value = jax.grad(total, argnums=1, has_aux=True)(function, x)
        slopes.append(slope)
        values.append(value)
    return Chains(x, *values, *slopes)


def step_sizes(kinds: tuple[str, ...]) -> Float[np.ndarray, " 2"]:
    """Log step sizes that suit ρ itself: unit Gaussians, and independent bits."""
    return np.array([-0.25 * np.log(max(1, sum(kind == "real" for kind in kinds))), np.log(2.0)])


def move(
    key: Key[Array, ""], chains: Chains, target: Target, n_noise: int, own: Key[Array, " r"] | None = None
) -> Chains:
    """One step of all chains: one of the moves that the columns admit, each as often as any other.

    Parameters
    ----------
    n_noise : chains that have noise of their own; further ones use the same again.
    own : keys of rows whose chains all have their own.
    """
    variates, kinds = Variates.draw(key, chains.x, n_noise, own), target.kind.columns.kinds
    jumps = jumps_of(kinds)
    if not jumps:
        return langevin(variates, chains, target)[0]
    if "real" not in kinds:
        return jump(variates, chains, target, jumps)[0]
    return lax.cond(
        variates.of_step[0] < 1 / (1 + len(jumps)),
        lambda c: langevin(variates, c, target)[0],
        lambda c: jump(variates, c, target, jumps)[0],
        chains,
    )


def jumps_of(kinds: tuple[str, ...]) -> tuple[Jump, ...]:
    """The moves that a table's discrete columns admit."""
    own = (FLIP, FLIP_MANY) if "binary" in kinds else ()
    return (*own, STEP_ONE) if {"categorical", "count"} & set(kinds) else own


def langevin(variates: Variates, chains: Chains, target: Target) -> tuple[Chains, Array]:
    """Leapfrog steps in the real cells; returns the chains and their acceptance probabilities."""
    step, own = variates.step(target.log_steps[0]), target.movable(("real",), chains.x)
    momentum = jnp.where(own, jax.scipy.special.ndtri(variates.first), 0)
    push_half = lambda speed, at: speed + 0.5 * step * jnp.where(own, at.slope(target.at), 0)  # noqa: E731

    def leap(_: Array, carry: tuple[Chains, Array]) -> tuple[Chains, Array]:
        now, speed = carry
        half = push_half(speed, now)
        now = look(target.params, now.x + step * half, target.kind)
        return now, push_half(half, now)

    there, end = lax.fori_loop(0, N_LEAPFROG, leap, (chains, momentum))
    kinetic = 0.5 * ((momentum**2).sum(axis=1) - (end**2).sum(axis=1))
    return _accept(variates, chains, there, kinetic, target)


def jump(variates: Variates, chains: Chains, target: Target, jumps: tuple[Jump, ...]) -> tuple[Chains, Array]:
    """One of some jumps; returns the chains and their acceptance probabilities."""
    number = jnp.minimum(jnp.floor(variates.of_step[1] * len(jumps)).astype(jnp.int32), len(jumps) - 1)
    rows, chosen = lax.switch(number, [lambda c, j=j: j.propose(variates, c, target) for j in jumps], chains)
    there = look(target.params, rows, target.kind)
    ways = [lambda c, t, which, j=j: j.correct(variates, c, t, which, target) for j in jumps]
    return _accept(variates, chains, there, lax.switch(number, ways, chains, there, chosen), target)


def _propose_flip(variates: Variates, chains: Chains, target: Target) -> tuple[Array, Array]:
    x = chains.x
    places = jnp.argmax(_flip_logs(chains, target) - jnp.log(-jnp.log(variates.first)), axis=1)  # Gumbel's trick
    chosen = jax.nn.one_hot(places, x.shape[1], dtype=bool) & target.movable(("binary",), x)
    return jnp.where(chosen, 1 - x, x), chosen


def _correct_flip(variates: Variates, chains: Chains, there: Chains, chosen: Array, target: Target) -> Array:
    return jnp.where(chosen, _flip_logs(there, target) - _flip_logs(chains, target), 0).sum(axis=1)


def _flip_logs(at: Chains, target: Target) -> Array:
    """Log probabilities of the cells to be flipped."""
    guess = 0.5 * at.slope(target.at) * (1 - 2 * at.x)
    return jax.nn.log_softmax(jnp.where(target.movable(("binary",), at.x), guess, _NEVER), axis=1)


def _propose_flips(variates: Variates, chains: Chains, target: Target) -> tuple[Array, Array]:
    x = chains.x
    wanted = variates.first < jax.nn.sigmoid(_flip_logits(variates, chains, target))
    chosen = wanted & target.movable(("binary",), x)
    return jnp.where(chosen, 1 - x, x), chosen


def _correct_flips(variates: Variates, chains: Chains, there: Chains, chosen: Array, target: Target) -> Array:
    sign = jnp.where(chosen, 1, -1).astype(chains.x.dtype)
    # Each cell flips or stays with probability σ(±a), and log σ(a) = -softplus(-a); summed there and back.
    ahead, back = (jax.nn.softplus(-sign * _flip_logits(variates, at, target)) for at in (chains, there))
    return jnp.where(target.movable(("binary",), chains.x), ahead - back, 0).sum(axis=1)


def _flip_logits(variates: Variates, at: Chains, target: Target) -> Array:
    """Logits of each cell's flip by itself."""
    return 0.5 * at.slope(target.at) * (1 - 2 * at.x) - 0.5 / variates.step(target.log_steps[1])


def _propose_step(variates: Variates, chains: Chains, target: Target) -> tuple[Array, Array]:
    """Another category round the circle, or a count up or down by up to a few of ρ's deviations: as likely as back."""
    x, columns = chains.x, target.kind.columns
    own = target.movable(("categorical", "count"), x)
    chosen = jax.nn.one_hot(jnp.argmax(jnp.where(own, variates.first, -1), axis=1), x.shape[1], dtype=bool) & own
    n_categories = jnp.asarray(columns.n_categories, x.dtype)[None, :]
    other = 1 + jnp.floor(variates.second * jnp.maximum(n_categories - 1, 1))  # 1 .. K-1
    away = 2 * variates.second - 1
    # Up or down by a geometric number, about a deviation of ρ on average: the way back is as likely as the way there.
    far = jnp.ceil(-jnp.log(jnp.abs(away)) * _deviations(target)[None, :])
    jumped = x + jnp.where(away < 0, -far, far)
    is_count = jnp.asarray(_is_count(target))[None, :]
    rows = jnp.where(chosen, jnp.where(is_count, jumped, jnp.mod(x + other, n_categories)), x)
    # A count below 0 is no proposal, and the chain stays, as Metropolis and Hastings would have it stay.
    possible = ((rows >= 0) & jnp.isfinite(rows) | ~chosen).all(axis=1)
    return jnp.where(possible[:, None], rows, x), chosen


def _correct_step(variates: Variates, chains: Chains, there: Chains, chosen: Array, target: Target) -> Array:
    return jnp.zeros_like(chains.tilt)


FLIP = Jump(_propose_flip, _correct_flip)  # Gibbs with gradients: one binary cell, chosen by what the gradient says
FLIP_MANY = Jump(_propose_flips, _correct_flips)  # its parallel form: each binary cell flips or not by itself
STEP_ONE = Jump(_propose_step, _correct_step)  # one categorical cell or count


def tuned(
    key: Key[Array, ""], chains: Chains, target: Target, rate: Float[Array, ""] | float
) -> tuple[Chains, Float[Array, " 2"]]:
    """A step of each move that has a step size, and the sizes changed towards the acceptance wanted."""
    log_steps, kinds = target.log_steps, target.kind.columns.kinds
    variates = Variates.draw(key, chains.x, len(chains.x))
    change = jnp.zeros(2, log_steps.dtype)
    if "real" in kinds:
        chains, accepted = langevin(variates, chains, target)
        change = change.at[0].set(accepted.mean() - TARGET_ACCEPTANCE)
    if "binary" in kinds:
        variates = variates._replace(first=variates.second, decide=1 - variates.decide)
        chains, accepted = jump(variates, chains, target, (FLIP_MANY,))
        change = change.at[1].set(accepted.mean() - TARGET_ACCEPTANCE)
    return chains, jnp.clip(log_steps + rate * change, *_LOG_STEP_LIMITS)


def _is_count(target: Target) -> Bool[np.ndarray, " d"]:
    return np.array([kind == "count" for kind in target.kind.columns.kinds])


def _deviations(target: Target) -> Float[Array, " d"]:
    """√rate of count columns under ρ, and at least 1."""
    columns = target.kind.columns
    rates = columns.expected_rows(columns.mean(target.params.reference))
    return jnp.where(_is_count(target), jnp.sqrt(jnp.maximum(rates, 1)), 1)


def _accept(variates: Variates, old: Chains, new: Chains, log_proposals: Array, target: Target) -> tuple[Chains, Array]:
    """Metropolis and Hastings: the new states with probability min(1, odds); a step into nowhere is refused.

    `log_proposals` is what the way back and the way there contribute to the log odds.
    """
    log_odds = new.value(target.at) - old.value(target.at) + log_proposals
    log_odds = jnp.where(jnp.isnan(log_odds), -jnp.inf, log_odds)
    taken = jnp.log(variates.decide) < log_odds
    kept = jax.tree.map(lambda a, b: jnp.where(taken if a.ndim == 1 else taken[:, None], a, b), new, old)
    return kept, jnp.exp(jnp.minimum(log_odds, 0))
