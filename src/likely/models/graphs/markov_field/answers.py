"""A field's answers about rows: evidence, samples and conditionals, exact where the memory holds the tables.

Elsewhere evidence has strict limits, and samples and conditionals come from Gibbs chains that are watched.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from likely.contract.conditional import ConditionalParts
from likely.contract.drawing.mixing import DrawnRows, Mixing, Sampling
from likely.contract.evidence import Evidence
from likely.models.graphs.inference.engine import impossible
from likely.models.graphs.inference.memory import ALLOW_BOUNDS, TooLargeError
from likely.models.graphs.markov_field.alone import Alone
from likely.models.graphs.markov_field.gibbs import sweeps, watched
from likely.models.graphs.markov_field.partition import limits
from likely.runtime import generator


def evidence(model: Any, rows: np.ndarray) -> Evidence:
    """log p of the observed cells of rows (R, d)."""
    beside = Alone.of(model.columns_).log_prob(model.params_.alone, rows)
    if not model._discrete:
        return Evidence.exact(beside, method="closed form")
    field, states, log_z = model._potentials, model._states(rows), model.log_partition()
    lower, upper = np.empty(len(rows)), np.empty(len(rows))
    whole = (states >= 0).all(axis=1)
    lower[whole] = upper[whole] = field.energies(states[whole])
    if not whole.all():
        lower[~whole], upper[~whole] = _sums(model, states[~whole])
    # A row without an observed cell has the probability 1 of all rows together, whatever limits say of either sum.
    nothing = (states < 0).all(axis=1)
    if log_z.kind == "exact" and (lower == upper).all():
        return Evidence.exact(np.where(nothing, 0.0, lower - log_z.value) + beside, method=log_z.method)
    # A log probability of discrete cells lies between the least sum over the greatest Z and the reverse, and below 0.
    low, high = lower - log_z.upper, np.minimum(upper - log_z.lower, 0.0)
    middle = np.clip((lower + upper) / 2 - log_z.value, low, high)
    parts = [np.where(nothing, 0.0, part) + beside for part in (middle, low, high)]
    return Evidence.estimate(*parts, method=log_z.method)


def _sums(model: Any, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Limits of the log of the sum over what rows leave open; equal where it is exact."""
    field, engine = model._potentials, model._engine
    try:
        found = engine.batch().infer(states).log_evidence + field.shift
        return found, found
    except TooLargeError as error:
        if model.inference == "exact":
            raise error.advising(ALLOW_BOUNDS) from None
    out = np.empty((2, len(states)))
    for r, row in enumerate(states):
        try:
            out[:, r] = engine.log_evidence(row) + field.shift
        except TooLargeError:
            out[:, r] = limits(field, row)
    return out[0], out[1]


def sample(model: Any, key: jax.Array, n: int) -> Any:
    """(n, d) rows, in standard units."""
    rng, discrete = generator(key), model._discrete
    out = Alone.of(model.columns_).sample(rng, model.params_.alone, n)
    if not discrete:
        return out
    try:
        out[:, discrete] = model._engine.batch().draw(rng, n)[:, 0]
        return out
    except TooLargeError as error:
        if model.inference == "exact":
            raise error.advising(ALLOW_BOUNDS) from None
    # Each row has a chain of its own, from states that are drawn alike. How far such chains have come is judged by
    # others that are watched all the way, with nothing observed.
    field = model._potentials
    x = np.stack([rng.integers(0, int(k), n) for k in field.n_states], axis=1)
    out[:, discrete] = sweeps(rng, field, x, model.n_sweeps)
    shares, _ = watched(rng, field, np.full(len(field.names), -1), model.n_chains, model.n_sweeps)
    every = np.ones((1, len(shares.mean)), bool)
    mixing = Mixing.of_chains(model.n_chains, shares.r_hat[None], shares.n_effective[None], shares.stderr[None], every)
    return DrawnRows(out, Sampling(f"Gibbs, {model.n_sweeps} sweeps from states alike", mixing, model.n_sweeps))


def condition(model: Any, rows: np.ndarray, key: jax.Array) -> ConditionalParts:
    """What follows for the missing cells of rows (R, d)."""
    alone, states = Alone.of(model.columns_), model._states(rows)
    moments = alone.moments(model.params_.alone, len(rows))
    if not model._discrete:
        return ConditionalParts(alone.statistics(rows, moments), lambda k, n: _exact_draws(model, k, rows, n))
    try:
        found = model._engine.batch().infer(states, marginals=True)
    except TooLargeError as error:
        if model.inference == "exact":
            raise error.advising(ALLOW_BOUNDS) from None
        return _chained(model, rows, key)
    if not np.isfinite(found.log_evidence).all():
        raise impossible()
    moments |= _by_place(model, np.asarray(found.marginals))
    return ConditionalParts(alone.statistics(rows, moments), lambda k, n: _exact_draws(model, k, rows, n))


def _by_place(model: Any, flat: np.ndarray) -> dict[int, np.ndarray]:
    """Figures of states (R, S) as those of statistics, by place of the cell."""
    starts, out = np.concatenate([[0], np.cumsum(model._potentials.n_states)]), {}
    for number, place in enumerate(model._discrete):
        own = flat[:, starts[number] : starts[number + 1]]
        out[place] = own[:, 1:] if model.columns_.kinds[place] == "binary" else own
    return out


def _exact_draws(model: Any, key: jax.Array, rows: np.ndarray, n: int) -> np.ndarray:
    rng = generator(key)
    out = Alone.of(model.columns_).sample(rng, model.params_.alone, n * len(rows)).reshape(n, *rows.shape)
    if model._discrete:
        out[:, :, model._discrete] = model._engine.batch().draw(rng, n, model._states(rows))
    return np.where(np.isnan(rows)[None], out, rows[None])


def _chained(model: Any, rows: np.ndarray, key: jax.Array) -> ConditionalParts:
    """By chains of each row; the same noise serves every row, so that a row's answer is its own."""
    alone, field, states = Alone.of(model.columns_), model._potentials, model._states(rows)
    found = [watched(generator(key), field, row, model.n_chains, model.n_sweeps)[0] for row in states]
    each = {
        name: np.stack([getattr(one, name) for one in found]) for name in ("mean", "stderr", "r_hat", "n_effective")
    }
    moments = alone.moments(model.params_.alone, len(rows)) | _by_place(model, each["mean"])
    mean = alone.statistics(rows, moments)
    stderr = alone.flat(_by_place(model, each["stderr"]), len(rows), 0.0)
    r_hat = alone.flat(_by_place(model, each["r_hat"]), len(rows), 1.0)
    effective = alone.flat(_by_place(model, each["n_effective"]), len(rows), np.inf)
    holes = {place: np.isnan(rows[:, [place]]) & np.ones(each.shape[1:], bool) for place, each in moments.items()}
    unobserved = alone.flat(holes, len(rows), 0.0) > 0
    mixing = Mixing.of_chains(model.n_chains, r_hat, effective, stderr, unobserved)
    method = f"Gibbs, {model.n_chains} chains of {model.n_sweeps} sweeps"
    return ConditionalParts(mean, lambda k, n: _chain_draws(model, k, rows, n), method, stderr, mixing)


def _chain_draws(model: Any, key: jax.Array, rows: np.ndarray, n: int) -> np.ndarray:
    """(n, R, d): a chain for each draw."""
    rng, field, states = generator(key), model._potentials, model._states(rows)
    out = Alone.of(model.columns_).sample(rng, model.params_.alone, n * len(rows)).reshape(n, *rows.shape)
    wanted = np.repeat(states[None], n, axis=0).reshape(-1, states.shape[1])
    x = np.stack([rng.integers(0, int(k), len(wanted)) for k in field.n_states], axis=1)
    x = sweeps(rng, field, np.where(wanted >= 0, wanted, x), model.n_sweeps, held=wanted >= 0)
    out[:, :, model._discrete] = x.reshape(n, *states.shape)
    return np.where(np.isnan(rows)[None], out, rows[None])
