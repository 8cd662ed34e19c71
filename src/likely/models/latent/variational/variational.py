"""What autoencoders that learn by a variational bound have in common: hyper-parameters, training, answers.

`Variational` trains any module with a bound as its objective; `Decoded` answers for modules whose latents have one
prior and one decoder, by importance sampling from q(z | x). Both are abstract: a model names its module.
"""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from inspect import signature
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from likely.contract.conditional import ConditionalParts
from likely.contract.drawing.mixing import Mixing
from likely.contract.evidence import Evidence
from likely.contract.model import FitRun, Model
from likely.contract.settings import Count, NonNegative, Positive, Whole
from likely.contract.trained import GradientTrained, HeldOut
from likely.models.latent.variational.column_means import starting_point
from likely.models.latent.variational.importance import codes, decoded, draw, draw_new, weigh_rows
from likely.models.latent.variational.network import VAEParams, centred_module, layer_sizes
from likely.nets.mlp import Activation
from likely.objectives.elbo import elbo_loss, negative_elbo
from likely.objectives.importance_weighted import importance_loss, negative_importance_bound
from likely.runtime import BLOCK_ROWS, by_blocks, on_device
from likely.training import train
from likely.training.optimisers import Schedule


class Variational(HeldOut, GradientTrained, Model):
    """Trained by gradient on a bound; hyper-parameters as `likely.VAE` describes them."""

    _: KW_ONLY
    activation: Activation = "gelu"
    learning_rate: Positive = 3e-3
    schedule: Schedule = "cosine"
    weight_decay: NonNegative = 0.1
    n_importance: Count = 256

    _resumable = True
    _effort = _conditional_effort = "n_importance"

    @abc.abstractmethod
    def _build(self) -> Callable[..., Any]:
        """(key, columns) -> the module before training, as a `jax.tree_util.Partial`: equal ones share a program."""

    def _init(self, key, columns):
        return self._build()(key, columns)

    def _start(self, build: Callable[..., Any], rows: np.ndarray, key: jax.Array) -> Any:
        """The autoencoder that training starts from."""
        return centred_module(starting_point(rows, self.columns_), build, key, self.columns_)

    def _train(
        self,
        module: Any,
        objective: Any,
        validate: Any,
        rows: np.ndarray,
        key: jax.Array,
        run: FitRun,
        n_warmup_epochs: float,
        may_hold_out: np.ndarray | None = None,
    ) -> Any:
        """The trained module. `objective` has warm-up steps, and `validate` is the loss of validation rows."""
        given = run
        rows, run = self._divided(rows, key, given, may_hold_out)
        n_warmup = math.ceil(n_warmup_epochs * math.ceil(len(rows) / self.batch_size))
        result = train(
            module,
            partial(objective, warmup_steps=n_warmup),
            rows,
            config=self._training(**self._stopping(given, run, len(rows))),
            key=key,
            state=jnp.array(0, jnp.int32) if n_warmup else None,
            validate=None if run.valid is None else validate,
            valid_rows=run.valid,
            checkpoint=run.checkpoint,
            resume=run.resume,
        )
        self.history_ = self._with_held_out(result.history, given, run)
        return result.module

    def _sizes(self, name: str) -> tuple[int, ...]:
        """Hyper-parameter `name` as sizes of layers."""
        return layer_sizes(name, getattr(self, name))

    def _warn_of_many(self, n_latent: int, name: str) -> None:
        n_columns = self.columns_.n_columns
        # Who takes the default has not chosen a number that could be lower.
        is_default = getattr(self, name) == signature(type(self)).parameters[name].default
        if n_latent > n_columns and not is_default:
            warnings.warn(
                f"{n_latent} latents are more than the {n_columns} columns that they explain: some will stay unused; "
                f"lower `{name}`.",
                UserWarning,
                stacklevel=4,
            )


class Decoded(Variational):
    """Latents with one prior and one decoder, as `VAEParams` has them."""

    _: KW_ONLY
    n_samples: Count = 1
    n_importance_train: Count = 1
    n_importance_drawn: Count | None = None
    beta: NonNegative = 1.0
    beta_warmup: NonNegative = 10.0
    n_refine: Whole = 30
    warm_start: bool = False

    def _learn(self, module: VAEParams, rows: np.ndarray, key: jax.Array, run: FitRun) -> VAEParams:
        """The module trained by the bound that the hyper-parameters name."""
        if (self.n_importance_drawn or 1) > self.n_importance_train:
            raise ValueError(
                f"`n_importance_drawn` ({self.n_importance_drawn}) cannot be more than `n_importance_train` "
                f"({self.n_importance_train}), of which they are drawn."
            )
        module = self._continued(module)
        if self.n_importance_train == 1:
            objective = partial(negative_elbo, n_samples=self.n_samples, beta=self.beta)
            return self._train(module, objective, partial(elbo_loss, n_samples=4), rows, key, run, self.beta_warmup)
        if self.n_samples > 1:
            raise ValueError(
                f"`n_samples` ({self.n_samples}) and `n_importance_train` ({self.n_importance_train}) cannot both be "
                "above 1: samples are averaged inside the logarithm or outside; set one of them to 1."
            )
        settings: dict[str, Any] = {"n_importance": self.n_importance_train, "n_drawn": self.n_importance_drawn}
        objective = partial(negative_importance_bound, **settings, beta=self.beta)
        validate = partial(importance_loss, n_importance=self.n_importance_train)
        return self._train(module, objective, validate, rows, key, run, self.beta_warmup)

    def _continued(self, module: VAEParams) -> VAEParams:
        """The module to start from: where `warm_start` says so, what the last fit learned."""
        if not self.warm_start or not hasattr(self, "params_"):
            return module
        shapes = [(jax.tree.structure(one), [a.shape for a in jax.tree.leaves(one)]) for one in (module, self.params_)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                "`warm_start` goes on with the networks and columns of the last fit, and these are others: set "
                "warm_start=False to start anew."
            )
        return self.params_

    def _evidence(self, rows, key):
        return importance_evidence(partial(self._weigh, key), rows, self.n_importance)

    def _sample(self, key, n):
        return new_rows(draw_new, self.params_, key, n)

    def _condition(self, rows, key):
        return importance_conditional(partial(self._weigh, key), draw, self.params_, key, rows, self.n_importance)

    def _encode(self, rows, key):
        return by_blocks(lambda x, observed: codes(key, self.params_, x, observed, self.n_refine), rows)

    def _decode(self, codes):
        return by_blocks(lambda z, _: decoded(self.params_, z), codes)

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))

    def _weigh(self, key: jax.Array, x: Array, observed: Array | None, conditional: bool = False) -> Any:
        options: dict[str, Any] = {
            "n_importance": self.n_importance,
            "n_refine": self.n_refine,
            "conditional": conditional,
        }
        return weigh_rows(key, self.params_, x, observed, **options)


def importance_evidence(weigh: Callable[..., Any], rows: np.ndarray, n_importance: int) -> Evidence:
    """The importance-weighted bound of rows; `weigh(x, observed)` gives a block's samples, weighed, and their q."""
    values, replicates = by_blocks(lambda x, observed: weigh(x, observed)[0][:2], rows)
    method = f"importance sampling from q(z | x), {n_importance} samples"
    return Evidence.lower_bound(values, replicates if n_importance > 1 else None, method=method)


def importance_conditional(
    weigh: Callable[..., Any],
    draw: Callable[..., Any],
    module: Any,
    key: jax.Array,
    rows: np.ndarray,
    n_importance: int,
) -> ConditionalParts:
    """The conditional of rows by weighed samples of their latents.

    `draw(draw_key, key, module, log_weights, q)` makes rows of the weights and the q of some; `key` is the one that the
    samples were drawn with, so that only their weights need be kept.
    """
    weighted, q = by_blocks(lambda x, observed: weigh(x, observed, conditional=True), rows)

    def sample_block(draw_key: jax.Array, part: np.ndarray) -> Array:
        return draw(draw_key, key, module, *(on_device(array[part]) for array in (weighted.log_weights, q)))

    method = f"importance resampling of {n_importance} latents"
    mixing = Mixing.of_weights(weighted.log_weights, np.isnan(rows).any(axis=1))
    draws = partial(draws_of, sample_block, len(rows))
    return ConditionalParts(weighted.average, draws, method, weighted.stderr, mixing)


def new_rows(draw_new: Callable[[jax.Array, Any, int], Array], module: Any, key: jax.Array, n: int) -> np.ndarray:
    """n rows of a model by `draw_new(key, module, n)`, in blocks of one shape."""
    return draws_of(lambda block_key, part: draw_new(block_key, module, len(part)), 1, key, n)[:, 0]


def draws_of(sample_block: Callable[..., Any], n_rows: int, key: Any, n: int) -> np.ndarray:
    """(n, n_rows, d) draws of rows by `sample_block(key, numbers of rows)`.

    Rows and draws are in one list, in blocks of one shape: one program, whatever their numbers.
    """
    whose = np.arange(math.ceil(n * n_rows / BLOCK_ROWS) * BLOCK_ROWS) % n_rows
    blocks = enumerate(whose.reshape(-1, BLOCK_ROWS))
    draws = [np.asarray(sample_block(jax.random.fold_in(key, number), part)) for number, part in blocks]
    return np.concatenate(draws)[: n * n_rows].reshape(n, n_rows, -1)
