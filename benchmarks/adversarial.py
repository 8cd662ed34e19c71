"""Maxout networks on MNIST, trained as usual and against moves of 0.25 a pixel: test error under attack.

Goodfellow, Shlens and Szegedy (2015): 89.4% error under the fast gradient sign becomes 17.9% by training against it.
A single step says little of the worst case, so that 40 projected gradient steps are measured beside it, on part of the
test rows. Both nets have the same architecture, settings and randomness, fixed before any test row was looked at.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.data import load
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import cpu_stopwatch, in_words
from likely.nets import MLP
from likely.training import (
    Adversary,
    TrainingConfig,
    fast_gradient_sign,
    perturbed,
    projected_gradient,
    train,
)

EPSILON, N_PIXELS = 0.25, 784
WEAK_BAR, STRONG_BAR = 0.8, 0.2
N_EPOCHS, N_PROJECTED = {"usual": 4, "adversarial": 8}, 1000


def row_losses(net: MLP, batch: Any, key: Any) -> jax.Array:
    """−log P(class | pixels); the class is the last column."""
    return _losses(net(batch.x[:, :N_PIXELS]), batch.x[:, -1])


def objective(net: MLP, batch: Any, key: Any, state: None) -> Any:
    """The mean of them."""
    return jnp.sum(batch.weight * row_losses(net, batch, key)) / jnp.sum(batch.weight), (state, {})


def run(*, small: bool, seed: int) -> Outcome:
    rows, test = _made_up(seed) if small else _mnist()
    seconds, errors = {}, {}
    for name in N_EPOCHS:
        seconds[name], net = cpu_stopwatch(partial(_trained, name, rows, small, seed))
        errors[name] = _errors(net, test, seed, 20 if small else N_PROJECTED)
    return Outcome(_lines(errors, seconds), {"errors": errors, "seconds": seconds, "rows": len(rows)})


def _trained(name: str, rows: np.ndarray, small: bool, seed: int) -> MLP:
    goal: Any = objective
    if name == "adversarial":
        goal = perturbed(objective, Adversary(row_losses, EPSILON, N_PIXELS, 0.5, 0.0, 1.0))
    hidden = (8,) if small else (200, 200)
    net = MLP(jax.random.key(seed), N_PIXELS, 10, hidden=hidden, activation="maxout", pieces=3)
    n_epochs = 1 if small else N_EPOCHS[name]
    config = TrainingConfig(n_epochs=n_epochs, batch_size=100, learning_rate=1e-3, schedule="cosine")
    return train(net, goal, rows, config=config, key=jax.random.key(seed)).module


def _lines(errors: dict[str, dict[str, float]], seconds: dict[str, float]) -> list[Line]:
    lines = []
    for name, bar in (("usual", f"> {WEAK_BAR:.0%}"), ("adversarial", f"< {STRONG_BAR:.0%}")):
        own = errors[name]
        reached = own["sign"] > WEAK_BAR if name == "usual" else own["sign"] < STRONG_BAR
        lines.append(
            Line(
                what=f"Maxout net on MNIST, {name} training: error under the fast gradient sign, ε = {EPSILON}",
                ours=f"{own['sign']:.2%}",
                quality=f"as they are {own['clean']:.2%}, 40 projected steps {own['projected']:.2%} "
                f"(± {own['projected_error']:.1%}); {in_words(seconds[name])} of processor time",
                bar=bar,
                reached=bool(reached),
            )
        )
    return lines


def _errors(net: MLP, test: np.ndarray, seed: int, n_projected: int) -> dict[str, float]:
    """Shares of test rows that are named wrongly: as they are, after one step, after many."""

    def wrong(rows: jax.Array, key: Any) -> jax.Array:
        x, codes = rows[:, :N_PIXELS], rows[:, -1]
        losses = lambda x: _losses(net(x), codes)  # noqa: E731
        moved = fast_gradient_sign(losses, x, EPSILON, low=0.0, high=1.0)
        far = x if key is None else projected_gradient(key, losses, x, EPSILON, n_steps=40, low=0.0, high=1.0)
        return jnp.stack([jnp.argmax(net(own), axis=1) != codes for own in (x, moved, far)])

    quick, slow = jax.jit(lambda rows: wrong(rows, None)), jax.jit(lambda rows: wrong(rows, jax.random.key(seed)))
    blocks = np.array_split(test, max(1, len(test) // 1000))
    clean, sign, _ = np.concatenate([quick(block) for block in blocks], axis=1).mean(axis=1)
    projected = float(np.asarray(slow(test[:n_projected]))[2].mean())
    error = float(np.sqrt(projected * (1 - projected) / len(test[:n_projected])))
    return {"clean": float(clean), "sign": float(sign), "projected": projected, "projected_error": error}


def _losses(logits: jax.Array, codes: jax.Array) -> jax.Array:
    own = jnp.take_along_axis(logits, codes.astype(jnp.int32)[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(logits, axis=1) - own


def _mnist() -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows with the class as one more column."""
    dataset = load("mnist", binarize=None)
    parts = [np.column_stack([getattr(dataset, part), dataset.labels[part]]) for part in ("train", "test")]
    return parts[0].astype(np.float32), parts[1].astype(np.float32)


def _made_up(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the same kind, of which nothing is to be learned."""
    random = np.random.default_rng(seed)
    rows = np.column_stack([random.uniform(size=(200, N_PIXELS)), random.integers(0, 10, 200)]).astype(np.float32)
    return rows[:100], rows[100:]
