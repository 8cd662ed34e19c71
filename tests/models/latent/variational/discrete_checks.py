"""Small autoencoders with discrete latents, their distribution by plain loops, and checks that controls share."""

from __future__ import annotations

import itertools
import math
from functools import partial
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from likely.columns import Columns
from likely.gradients import Enumeration, make_estimator
from likely.models.latent.variational.discrete.network import Design, first_module
from likely.objectives.discrete_elbo import negative_discrete_elbo

N_COLUMNS = 4


def case(seed, *, n_categories=2, n_upper=2):
    """A linear module of random weights on four binary columns, three lower units (or two of three values)."""
    bits = n_categories == 2
    n_lower, n_upper = (3, n_upper) if bits else (6, 3 if n_upper else 0)
    design = Design(n_lower, n_categories, n_upper, (), "tanh", False)
    module = first_module(design, jax.random.key(0), Columns(("binary",) * N_COLUMNS, (2,) * N_COLUMNS))
    arrays, rest = eqx.partition(module, eqx.is_array)
    flat, unravel = ravel_pytree(arrays)
    return eqx.combine(unravel(0.8 * jax.random.normal(jax.random.key(seed), flat.shape, flat.dtype)), rest)


def all_rows(with_holes=True):
    values = (0.0, 1.0, np.nan) if with_holes else (0.0, 1.0)
    return np.array(list(itertools.product(values, repeat=N_COLUMNS)))


def split(rows):
    return jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows))


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def affine(net, inputs):
    return np.asarray(net.layers[0].weight) @ inputs + np.asarray(net.layers[0].bias)


class Loop:
    """The joint distribution of a case by loops over its units, from the weights alone."""

    def __init__(self, module):
        self.module = module
        self.c = 2 if module.prior.ndim == 1 else module.prior.shape[1]
        n_upper = 0 if module.upper is None else module.prior.shape[0]
        self.lower = list(itertools.product(range(self.c), repeat=module.n_lower))
        self.upper = list(itertools.product(range(self.c), repeat=n_upper))

    def inputs(self, codes):
        """What a network reads: ±1, or centred one-hot of variance 1."""
        if self.c == 2:
            return 2.0 * np.array(codes) - 1
        return ((np.eye(self.c)[list(codes)] - 1 / self.c) * self.c / math.sqrt(self.c - 1)).ravel()

    def probability(self, logits, codes):
        if self.c == 2:
            p = sigmoid(logits)
            return np.prod(np.where(np.array(codes) == 1, p, 1 - p))
        weights = np.exp(logits.reshape(-1, self.c))
        return np.prod([row[code] / row.sum() for row, code in zip(weights, codes, strict=True)])

    def joint(self):
        """(lower, upper, p(lower, upper), means of the columns) of every configuration."""
        module, prior = self.module, np.asarray(self.module.prior)
        for lower, upper in itertools.product(self.lower, self.upper):
            if self.upper == [()]:
                p = self.probability(prior, lower)
            else:
                p = self.probability(prior, upper) * self.probability(affine(module.upper, self.inputs(upper)), lower)
            yield lower, upper, p, sigmoid(affine(module.decoder, self.inputs(lower)))

    def posterior(self, row):
        """p(row), and the columns' means given the row."""
        total, average = 0.0, 0.0
        for _, _, p, means in self.joint():
            cells = np.where(np.isnan(row), 1, np.where(row == 1, means, 1 - means))
            total, average = total + p * cells.prod(), average + p * cells.prod() * means
        return total, average / total

    def elbo(self, row):
        """E_q log p(x, z) / q(z) of a complete row."""
        features = row - np.asarray(self.module.offset)
        logits = affine(self.module.encoder, features)
        n = self.module.n_lower * (1 if self.c == 2 else self.c)
        bound = 0.0
        for lower, upper, p, means in self.joint():
            q = self.probability(logits[:n], lower) * (self.probability(logits[n:], upper) if upper else 1.0)
            bound += q * (np.log(p) + np.log(np.where(row == 1, means, 1 - means)).sum() - np.log(q))
        return bound


def check_log_prob(log_prob, module, rows):
    expected = [np.log(Loop(module).posterior(row)[0]) for row in rows]
    np.testing.assert_allclose(log_prob(module, *split(rows)), expected, rtol=1e-8, atol=1e-12)


def batch_of(rows):
    weight = jnp.asarray(np.linspace(0.5, 1.5, len(rows)))
    return SimpleNamespace(x=jnp.asarray(rows), observed=None, weight=weight)


def slope_of(objective, module, batch, estimator, n_samples, key, state):
    arrays, rest = eqx.partition(module, eqx.is_inexact_array)

    def loss(arrays):
        built = eqx.combine(arrays, rest)
        return objective(built, batch, key, state, estimator=estimator, n_samples=n_samples)[0]

    return ravel_pytree(jax.grad(loss)(arrays))[0]


def check_objective_is_unbiased(objective, name, seed, n_draws=4000, n_samples=2):
    """The mean gradient in all weights is that of the enumerated bound, within five standard errors."""
    module, batch, estimator = case(seed), batch_of(all_rows(with_holes=False)[[3, 9, 12]]), make_estimator(name)
    n_context = len(module.offset)
    state = estimator.start(jax.random.key(0), n_context, jnp.float64)

    @jax.jit
    def estimates(keys):
        one = partial(slope_of, objective, module, batch, estimator, n_samples)
        return jax.lax.map(lambda key: one(key, state), keys, batch_size=500)

    @jax.jit
    def exact():
        return slope_of(negative_discrete_elbo, module, batch, Enumeration(), 1, jax.random.key(0), None)

    slopes, right = np.asarray(estimates(jax.random.split(jax.random.key(seed), n_draws))), np.asarray(exact())
    error = slopes.std(axis=0, ddof=1) / np.sqrt(n_draws)
    assert (np.abs(slopes.mean(axis=0) - right) < 5 * error + 1e-9).all()
    return right
