"""MNIST with all labels: a perceptron that knows nothing of pixels, and convolutions with displaced pictures.

The perceptron is normalised by batches, with noise on its inputs and hidden units (Rasmus et al., 2015, their baseline
without a decoder, whose sizes and noise these are): whatever permutation of the pixels, it would learn the same. The
convolutional network, normalised by batches as well, sees every picture shifted, turned and bent a little, anew at each
step. Both learn from all
60,000 training rows by the one training loop, for a number of epochs that was fixed beforehand. The bar of 20
minutes on two cores is one of 40 minutes of processor time, which others on the machine do not change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import cpu_stopwatch, in_words, stopwatch
from likely.nets import MLP, BatchNorm, Convolution, RunningMoments, correlate, max_pool
from likely.training import Augmentation, ImageAugmentation, TrainingConfig, perturbed, train

SIDE, N_CLASSES = 28, 10
N_PIXELS = SIDE * SIDE
BARS = {"permutation invariant": 1.06, "convolutional": 0.6}  # per cent
MINUTES, CORES = 20, 2


class Perceptron(eqx.Module):
    """Linear layers, each but the last normalised by its batch, made noisy and rectified."""

    body: MLP
    norms: tuple[BatchNorm, ...]

    def __init__(self, key: jax.Array, hidden: tuple[int, ...]):
        self.body = MLP(key, N_PIXELS, N_CLASSES, hidden=hidden, activation="relu")
        self.norms = tuple(BatchNorm(size) for size in hidden)

    def learn(
        self, x: jax.Array, moments: tuple[RunningMoments, ...], key: jax.Array, noise: float, weight: jax.Array
    ) -> tuple[jax.Array, tuple[RunningMoments, ...]]:
        """Logits of a batch with noise of this deviation on it and on every layer, and the moments with it."""
        keys = jax.random.split(key, len(self.norms) + 1)
        h, after = x + noise * jax.random.normal(keys[0], x.shape, x.dtype), []
        for layer, norm, own, k in zip(self.body.layers[:-1], self.norms, moments, keys[1:], strict=True):
            h, new = norm.learn(h @ layer.weight.T, own, weight)
            h = jax.nn.relu(h + noise * jax.random.normal(k, h.shape, h.dtype))
            after.append(new)
        last = self.body.layers[-1]
        return h @ last.weight.T + last.bias[None], tuple(after)

    def predict(self, x: jax.Array, moments: tuple[RunningMoments, ...]) -> jax.Array:
        """Logits by the moments of the rows so far, without noise."""
        for layer, norm, own in zip(self.body.layers[:-1], self.norms, moments, strict=True):
            x = jax.nn.relu(norm(x @ layer.weight.T, own))
        return x @ self.body.layers[-1].weight.T + self.body.layers[-1].bias[None]


class Pictures(eqx.Module):
    """Convolutions, each normalised by its batch and followed by the largest of 2 × 2, and a perceptron."""

    layers: tuple[Convolution, ...]
    norms: tuple[BatchNorm, ...]
    head: MLP

    def __init__(self, key: jax.Array, channels: tuple[int, ...], size: int, hidden: int):
        first, *keys = jax.random.split(key, 1 + len(channels))
        pairs = zip(keys, (1, *channels[:-1]), channels, strict=True)
        self.layers = tuple(Convolution(k, a, b, size=size, stride=1) for k, a, b in pairs)
        self.norms = tuple(BatchNorm(n) for n in channels)
        n_flat = (SIDE // 2 ** len(channels)) ** 2 * channels[-1]
        self.head = MLP(first, n_flat, N_CLASSES, hidden=(hidden,), activation="relu")

    def learn(
        self, x: jax.Array, moments: tuple[RunningMoments, ...], key: jax.Array, dropout: float, weight: jax.Array
    ) -> tuple[jax.Array, tuple[RunningMoments, ...]]:
        """Logits of a batch with hidden units of the perceptron left out, and the moments with it."""
        h, after = x.reshape(len(x), SIDE, SIDE, 1), []
        for layer, norm, own in zip(self.layers, self.norms, moments, strict=True):
            h, new = norm.learn(correlate(h, layer.weight), own, weight)
            h = jax.nn.relu(max_pool(h))
            after.append(new)
        return self.head(h.reshape(len(x), -1), key=key, dropout=dropout), tuple(after)

    def predict(self, x: jax.Array, moments: tuple[RunningMoments, ...]) -> jax.Array:
        """Logits by the moments of the rows so far, with all units."""
        h = x.reshape(len(x), SIDE, SIDE, 1)
        for layer, norm, own in zip(self.layers, self.norms, moments, strict=True):
            h = jax.nn.relu(max_pool(norm(correlate(h, layer.weight), own)))
        return self.head(h.reshape(len(x), -1))


def batch_loss(net: Perceptron | Pictures, batch: Any, key: jax.Array, moments: Any, *, amount: float) -> Any:
    """The objective of both, whose state are the running moments; `amount` is of noise, or of units left out."""
    logits, moments = net.learn(batch.x[:, :N_PIXELS], moments, key, amount, batch.weight)
    return _mean_loss(logits, batch), (moments, {})


def run(*, small: bool, seed: int) -> Outcome:
    rows, test = _made_up(seed) if small else _mnist()
    lines, figures = [], {}
    for name, learn in LEARNERS.items():
        recipe = recipes.PREDICT_MNIST[name] | (SMALL[name] if small else {})
        processor, (seconds, logits) = cpu_stopwatch(partial(stopwatch, partial(learn, rows, recipe, seed)))
        found = _judged(logits, test) | {"seconds": seconds, "processor_seconds": processor, "recipe": recipe}
        figures[name] = found
        lines.append(_line(name, found))
    return Outcome(lines, figures)


def perceptron(rows: np.ndarray, recipe: dict[str, Any], seed: int) -> Callable[[jax.Array], jax.Array]:
    """Logits as a function of pixels."""
    settings = dict(recipe)
    hidden, noise = settings.pop("hidden"), settings.pop("noise")
    net = Perceptron(jax.random.key(seed), hidden)
    return _learned(net, partial(batch_loss, amount=noise), rows, settings, seed)


def convolutional(rows: np.ndarray, recipe: dict[str, Any], seed: int) -> Callable[[jax.Array], jax.Array]:
    """The same of the network that reads pictures."""
    settings = dict(recipe)
    shape = {name: settings.pop(name) for name in ("channels", "size", "hidden")}
    moved = {name: settings.pop(name) for name in ("shift", "rotate", "elastic")}
    objective = partial(batch_loss, amount=settings.pop("dropout"))
    displaced = Augmentation(ImageAugmentation((SIDE, SIDE), **moved), N_PIXELS)
    return _learned(Pictures(jax.random.key(seed), **shape), perturbed(objective, displaced), rows, settings, seed)


def _learned(net: Any, objective: Any, rows: np.ndarray, settings: dict[str, Any], seed: int) -> Any:
    moments = tuple(RunningMoments.start(len(norm.scale)) for norm in net.norms)
    config, key = TrainingConfig(**settings), jax.random.key(seed + 1)
    result = train(net, objective, rows, config=config, key=key, state=moments)
    return lambda x: result.module.predict(x, result.state)


LEARNERS = {"permutation invariant": perceptron, "convolutional": convolutional}
SMALL: dict[str, dict[str, Any]] = {
    "permutation invariant": {"hidden": (8,), "n_epochs": 1},
    "convolutional": {"channels": (2,), "size": 3, "hidden": 4, "n_epochs": 1},
}


def _line(name: str, found: dict[str, Any]) -> Line:
    within = found["processor_seconds"] <= 60 * MINUTES * CORES
    return Line(
        what=f"MNIST, all labels, {name}: test error",
        ours=f"{found['error']:.2f}% ± {found['stderr']:.2f}",
        quality=f"log loss {found['log_loss']:.4f}; trained in {in_words(found['seconds'])}, "
        f"{in_words(found['processor_seconds'])} of processor time",
        bar=f"≤ {BARS[name]:g}%, ≤ {MINUTES} min of {CORES} cores",
        reached=bool(found["error"] <= BARS[name] and within),
    )


def _judged(logits: Callable[[jax.Array], jax.Array], test: np.ndarray) -> dict[str, float]:
    """Error in per cent with its standard error, and the mean of −log p(class)."""
    answer = eqx.filter_jit(logits)
    blocks = np.array_split(test, max(1, len(test) // 1000))
    outputs = np.concatenate([answer(block[:, :N_PIXELS]) for block in blocks])
    log_p = np.asarray(jax.nn.log_softmax(outputs), np.float64)
    codes = test[:, -1].astype(np.intp)
    wrong = float(np.mean(log_p.argmax(axis=1) != codes))
    return {
        "error": 100 * wrong,
        "stderr": 100 * float(np.sqrt(wrong * (1 - wrong) / len(test))),
        "log_loss": float(-log_p[np.arange(len(test)), codes].mean()),
    }


def _mean_loss(logits: jax.Array, batch: Any) -> jax.Array:
    own = jnp.take_along_axis(jax.nn.log_softmax(logits), batch.x[:, -1].astype(jnp.int32)[:, None], axis=1)[:, 0]
    return -jnp.sum(batch.weight * own) / jnp.sum(batch.weight)


def _mnist() -> tuple[np.ndarray, np.ndarray]:
    """All training rows and the test rows, each with its class as one more column."""
    dataset = data.load("mnist", binarize=None)
    parts = [np.column_stack([getattr(dataset, part), dataset.labels[part]]) for part in ("train", "valid", "test")]
    return np.concatenate(parts[:2]).astype(np.float32), parts[2].astype(np.float32)


def _made_up(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the same kind, of which nothing is to be learned."""
    random = np.random.default_rng(seed)
    rows = np.column_stack([random.uniform(size=(200, N_PIXELS)), random.integers(0, 10, 200)]).astype(np.float32)
    return rows[:100], rows[100:]
