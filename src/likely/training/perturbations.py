"""Objectives that see their batch, or their module, a little otherwise at every step: noise, augmentation, adversaries.

A perturbation is a function (key, module, batch) -> (module, batch). `perturbed(objective, ...)` applies some of them,
each with randomness of its own, before the objective looks; so they compose, serve every objective of the one training
loop, and validation, which has none, sees rows as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from likely.training.adversarial import fast_gradient_sign
from likely.training.batches import Batch
from likely.training.program import comparable

Perturbation = Callable[[Key[Array, ""], Any, Batch], tuple[Any, Batch]]


def perturbed(objective: Any, *perturbations: Perturbation) -> Any:
    """The objective of perturbed modules and batches.

    Examples
    --------
    The mean of squares of zeros with noise of variance 4:

    >>> import numpy as np
    >>> def mean_square(module, batch, key, state):
    ...     return jnp.mean(batch.x**2), (state, {})
    >>> batch = Batch(np.zeros((1000, 10), np.float32), None, np.ones(1000, np.float32))
    >>> noisy = perturbed(mean_square, CellNoise(2.0))
    >>> round(float(noisy(None, batch, jax.random.key(0), None)[0]))
    4
    """
    return partial(_perturbed, comparable(objective), perturbations)


def _perturbed(
    objective: Any, perturbations: tuple[Any, ...], module: Any, batch: Batch, key: Array, state: Any
) -> Any:
    for number, perturb in enumerate(perturbations):
        # Folds of the key: the objective's own randomness is the same with perturbations and without.
        module, batch = perturb(jax.random.fold_in(key, number), module, batch)
    return objective(module, batch, key, state)


class CellNoise(eqx.Module):
    """Normal noise of this deviation on the columns `first` to `last` (all by default) where they are observed.

    On inputs it is like a penalty on the output's slopes; on a real target it is noise of the label.
    """

    scale: float
    first: int = eqx.field(default=0, static=True)
    last: int | None = eqx.field(default=None, static=True)

    def __call__(self, key: Key[Array, ""], module: Any, batch: Batch) -> tuple[Any, Batch]:
        """The batch with noise."""
        x = jnp.asarray(batch.x)
        part = x[:, self.first : self.last]
        noise = self.scale * jax.random.normal(key, part.shape, part.dtype)
        if batch.observed is not None:
            noise = jnp.where(batch.observed[:, self.first : self.last], noise, 0)
        return module, with_cells(batch, x.at[:, self.first : self.last].add(noise))


class WeightNoise(eqx.Module):
    """Normal noise of this deviation on arrays of two axes or more: the loss then prefers flat minima."""

    scale: float

    def __call__(self, key: Key[Array, ""], module: Any, batch: Batch) -> tuple[Any, Batch]:
        """The module with noise."""
        leaves, structure = jax.tree.flatten(module)
        noisy = [
            leaf + self.scale * jax.random.normal(jax.random.fold_in(key, number), leaf.shape, leaf.dtype)
            if eqx.is_inexact_array(leaf) and leaf.ndim >= 2
            else leaf
            for number, leaf in enumerate(leaves)
        ]
        return jax.tree.unflatten(structure, noisy), batch


class ClassNoise(eqx.Module):
    """The class code in a column drawn anew, evenly from all classes, in a share of the rows.

    The mean of the loss is then that of smoothed labels, (1 − rate) one-hot + rate / K: `smoothed_cross_entropy`
    has it without the noise.
    """

    rate: float
    n_classes: int = eqx.field(static=True)
    column: int = eqx.field(default=-1, static=True)

    def __call__(self, key: Key[Array, ""], module: Any, batch: Batch) -> tuple[Any, Batch]:
        """The batch with some other classes."""
        which_key, class_key = jax.random.split(key)
        x = jnp.asarray(batch.x)
        chosen = jax.random.bernoulli(which_key, self.rate, (len(x),))
        drawn = jax.random.randint(class_key, (len(x),), 0, self.n_classes).astype(x.dtype)
        return module, with_cells(batch, x.at[:, self.column].set(jnp.where(chosen, drawn, x[:, self.column])))


class Augmentation(eqx.Module):
    """A user's function (key, inputs (n, d)) -> (n, d) on the first columns, such as an `ImageAugmentation`."""

    function: Callable[[Key[Array, ""], Array], Array]
    n_inputs: int | None = eqx.field(default=None, static=True)

    def __call__(self, key: Key[Array, ""], module: Any, batch: Batch) -> tuple[Any, Batch]:
        """The batch with other inputs."""
        x = jnp.asarray(batch.x)
        changed = self.function(key, x[:, : self.n_inputs])
        if changed.shape != x[:, : self.n_inputs].shape:
            raise ValueError(f"an augmentation must keep the shape {x[:, : self.n_inputs].shape}, got {changed.shape}.")
        return module, with_cells(batch, x.at[:, : self.n_inputs].set(changed))


class Adversary(eqx.Module):
    """A share of the rows moved by ε in the direction of each cell that raises their loss (Goodfellow et al., 2015).

    Parameters
    ----------
    loss : (module, batch, key) -> (rows,) losses, as `train` takes for validation.
    epsilon : how far each input may move.
    n_inputs : the first columns, which move; None for all.
    share : of the rows. low, high : limits of the inputs, such as 0 and 1 of pixels.
    """

    loss: Callable[[Any, Batch, Key[Array, ""]], Array] = eqx.field(converter=comparable)
    epsilon: float
    n_inputs: int | None = eqx.field(default=None, static=True)
    share: float = 0.5
    low: float | None = None
    high: float | None = None

    def __call__(self, key: Key[Array, ""], module: Any, batch: Batch) -> tuple[Any, Batch]:
        """The batch with some rows moved."""
        which_key, loss_key = jax.random.split(key)
        x = jnp.asarray(batch.x)
        rest = x[:, len(x[0, : self.n_inputs]) :]

        def losses(inputs: Array) -> Array:
            return self.loss(module, with_cells(batch, jnp.concatenate([inputs, rest], axis=1)), loss_key)

        moved = fast_gradient_sign(losses, x[:, : self.n_inputs], self.epsilon, low=self.low, high=self.high)
        chosen = jax.random.bernoulli(which_key, self.share, (len(x), 1))
        inputs = jnp.where(chosen, moved, x[:, : self.n_inputs])
        return module, with_cells(batch, jnp.concatenate([inputs, rest], axis=1))


def smoothed_cross_entropy(logits: Array, codes: Array, amount: float) -> Array:
    """−Σ_k q_k log p_k of each row, q = (1 − amount) one-hot + amount / K (Szegedy et al., 2016).

    Examples
    --------
    >>> logits, codes = jnp.array([[2.0, 0.0, 0.0]]), jnp.array([0])
    >>> [round(float(smoothed_cross_entropy(logits, codes, amount)[0]), 4) for amount in (0.0, 0.3)]
    [0.2395, 0.6395]
    """
    log_p = jax.nn.log_softmax(logits)
    own = jnp.take_along_axis(log_p, codes[:, None], axis=1)[:, 0]
    return -(1 - amount) * own - amount * log_p.mean(axis=1)


def with_cells(batch: Batch, x: Array) -> Batch:
    """The batch with other cells; what is unobserved stays 0."""
    return Batch(x if batch.observed is None else jnp.where(batch.observed, x, 0), batch.observed, batch.weight)
