"""DiscreteVAE with 200 Bernoulli latents on binarized-mnist: each gradient estimator's bound, variance and seconds.

The same networks, steps and learning rate for all. The bound is the evidence lower bound of the test rows from hard
draws, also for estimators that train on relaxed ones. The variance is that of the encoder's gradient on one batch, in
the place that the leave-one-out score function reached, for all estimators alike.
"""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch
from likely.gradients import make_estimator
from likely.objectives.discrete_elbo import discrete_elbo_loss, negative_discrete_elbo
from likely.runtime import by_blocks
from likely.training import Batch

BAR = 2.0
RECIPE = {
    "n_components": 200,
    "hidden": (),
    "n_epochs": 30,
    "batch_size": 100,
    "learning_rate": 3e-3,
    "weight_decay": 0.0,
    "averaging": 0.999,
}
ESTIMATORS = {
    "score_leave_one_out": {"n_samples": 4},
    "gumbel_softmax": {"n_samples": 1, "temperature": (0.7, 0.2)},
    "rebar": {"n_samples": 1},
    "straight_through": {"n_samples": 1},
}
JUDGED = ("gumbel_softmax", "score_leave_one_out")
PUBLISHED = {"score_leave_one_out": "-112.2, score function", "gumbel_softmax": "-105.0", "straight_through": "-111.5"}


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=200)
    recipe = RECIPE | ({"n_components": 4, "n_epochs": 1} if small else {})
    names = list(ESTIMATORS)[: 1 if small else None]
    figures, models = {}, {}
    for name in names:
        model = likely.DiscreteVAE(
            **recipe, estimator=name, **ESTIMATORS[name], schema=dataset.schema, random_state=seed
        )
        seconds, _ = stopwatch(partial(model.fit, dataset.train))
        figures[name] = {
            "options": ESTIMATORS[name],
            "fit_seconds": seconds,
            "elbo": elbo(model, dataset.test, seed),
        }
        models[name] = model
    place, rows = models["score_leave_one_out"].params_, dataset.train[: recipe["batch_size"]]
    for name in names:
        figures[name]["variance"] = gradient_variance(place, rows, name, 5 if small else 200)
    judged = [figures[name]["elbo"] for name in JUDGED if name in figures]
    apart = max(judged) - min(judged)
    lines = [_line(name, figures[name], apart) for name in names]
    return Outcome(lines, {"recipe": recipe, "estimators": figures, "apart": apart})


def elbo(model: likely.DiscreteVAE, rows: np.ndarray, seed: int) -> float:
    """Mean bound of the rows, from 20 hard draws each."""
    loss = eqx.filter_jit(partial(discrete_elbo_loss, n_samples=20))

    def values(x, observed):
        return -loss(model.params_, Batch(x, observed, jnp.ones(len(x))), jax.random.key(seed))

    return float(by_blocks(values, rows.astype(np.float32)).mean())


def gradient_variance(module, rows: np.ndarray, name: str, n_draws: int) -> float:
    """Variance of one step's gradient in the encoder's weights, summed over them."""
    options = dict(ESTIMATORS[name])
    n_samples, pair = options.pop("n_samples"), options.pop("temperature", None)
    # of a temperature that falls, the last one
    estimator = make_estimator(name, **({"temperature": pair[-1]} if pair else {}))
    batch = Batch(jnp.asarray(rows, jnp.float32), None, jnp.ones(len(rows)))

    def slope(encoder, key, state):
        built = eqx.tree_at(lambda m: m.encoder, module, encoder)
        return negative_discrete_elbo(built, batch, key, state, estimator=estimator, n_samples=n_samples)

    @eqx.filter_jit
    def spread(key):
        def one(carry, key):
            state, first, second = carry
            flat, (state, _) = eqx.filter_grad(slope, has_aux=True)(module.encoder, key, state)
            flat, _ = ravel_pytree(flat)
            return (state, first + flat, second + flat**2), None

        start_key, key = jax.random.split(key)
        nothing = jnp.zeros(sum(leaf.size for leaf in jax.tree.leaves(module.encoder)))
        start = (estimator.start(start_key, len(module.offset), jnp.float32), nothing, nothing)
        (_, first, second), _ = lax.scan(one, start, jax.random.split(key, n_draws))
        return (second - first**2 / n_draws).sum() / (n_draws - 1)

    return float(spread(jax.random.key(0)))


def _line(name: str, figures: dict, apart: float) -> Line:
    judged = name in JUDGED
    return Line(
        what=f"200 Bernoulli latents, {name}, {figures['options']['n_samples']} draws a row",
        ours=f"{figures['elbo']:.2f} nats",
        peer=PUBLISHED.get(name, ""),
        quality=f"variance {figures['variance']:.3g}, in {in_words(figures['fit_seconds'])}",
        bar=f"the two within {BAR:g} nats" if judged else "",
        reached=bool(apart <= BAR) if judged else None,
    )
