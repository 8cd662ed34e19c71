"""The base of models of p(target | input) for sequences: fit, log_prob, save; training, padding and files live here.

A model writes hooks: `_learn` looks at the data (vocabularies, sizes), `_pairs` turns inputs and targets into arrays,
`_network` builds the parameters, and `_losses` is a pure function of them and of padded rows.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.contract.estimator import Arrays
from likely.contract.settings import Count, Positive, seed_of
from likely.contract.trained import Trained
from likely.objectives.sequence_loss import PADDING, mean_sequence_loss, sequence_loss
from likely.runtime import by_blocks
from likely.storage.modules import describe_estimator, restore_estimator, restore_module, save_module
from likely.training import train
from likely.training.optimisers import Schedule

_SHORTEST = 8  # sequences are padded to this length or a power of two, so that few programs serve all lengths


class SequencePredictor(Trained):
    """Base of the models of one sequence, or label, given another.

    Fitted attributes
    -----------------
    params_ : the network. history_ : learning curves, a dictionary of lists. seed_ : the seed `random_state` gave.
    """

    _: KW_ONLY
    n_epochs: Count = 20
    batch_size: Count = 64
    learning_rate: Positive = 3e-3
    schedule: Schedule = "cosine"
    gradient_clip: Positive | None = 1.0
    patience: Count | None = None

    _resumable = True
    _losses: ClassVar[Callable[..., Any]]  # (network, inputs, targets) -> (n,) sums of -log p, (n,) how many

    # ------------------------------------------------------------------------- hooks
    @abc.abstractmethod
    def _learn(self, X: Any, y: Any) -> None:
        """Set what is known before training: names ending in `_` that JSON can hold."""

    @abc.abstractmethod
    def _pairs(self, X: Any, y: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Inputs and targets as arrays, steps first, of numbers from 0 on."""

    @abc.abstractmethod
    def _network(self, key: jax.Array) -> Any:
        """A network before training."""

    # ------------------------------------------------------------------- the contract
    def fit(self, X: Any, y: Any, *, valid: Any = None, checkpoint: Any = None, resume: Any = None) -> Any:
        """Learn the targets y from the inputs X.

        Parameters
        ----------
        X, y : as many inputs as targets; see the class.
        valid : (X, y) of further pairs: the epoch with the least loss on them is kept.
        checkpoint, resume : where to save the run (a path or a `likely.Checkpoint`), and one to go on from.
        """
        self._validate_params()
        if self.patience is not None and valid is None:
            raise ValueError("`patience` needs pairs to wait for: give `valid` to fit, or set patience=None.")
        config = self._training()
        self._learn(X, y)
        inputs, targets = self._pairs(X, y)
        others = None if valid is None else self._pairs(*_pair(valid))
        self.seed_ = seed_of(self.random_state)
        start_key, train_key = jax.random.split(jax.random.key(self.seed_))
        widths = [max(map(len, part)) for part in (inputs, targets)]
        if others is not None:
            widths = [max(width, *map(len, part)) for width, part in zip(widths, others, strict=True)]
        rows = side_by_side((inputs, targets), widths)
        options: dict[str, Any] = {"losses": type(self)._losses, "split": widths[0] * _width(inputs)}
        result = train(
            eqx.filter_jit(self._network)(start_key),
            partial(sequence_loss, **options),
            rows,
            config=config,
            key=train_key,
            validate=None if others is None else partial(mean_sequence_loss, **options),
            valid_rows=None if others is None else side_by_side(others, widths),
            checkpoint=checkpoint,
            resume=resume,
        )
        self.params_, self.history_ = result.module, result.history
        return self

    def log_prob(self, X: Any, y: Any) -> np.ndarray:
        """(n,) exact log p(target | input) in nats."""
        check_is_fitted(self)
        inputs, targets = self._pairs(X, y)
        losses = partial(_totals, self.params_, losses=type(self)._losses)
        return -np.array(grouped(losses, inputs, targets), np.float64)

    def _to_file(self) -> tuple[Arrays, dict[str, Any]]:
        return save_module(self.params_), describe_estimator(self, apart=("params_",))

    @classmethod
    def _from_file(cls, arrays: Arrays, meta: dict[str, Any]) -> SequencePredictor:
        model = restore_estimator(cls, meta)
        model.params_ = restore_module(jax.eval_shape(model._network, jax.random.key(0)), arrays)
        return model


def grouped(function: Callable[..., Any], *parts: Sequence[np.ndarray]) -> list[Any]:
    """function(padded inputs, ...) -> array or tuple of them, rows first; its results row by row, in order.

    Rows of alike padded lengths go together, so that a row's result does not depend on how long others are.
    """
    rooms = np.array([[_room(len(part[row])) for part in parts] for row in range(len(parts[0]))])
    out: list[Any] = [None] * len(rooms)
    for sizes in np.unique(rooms, axis=0):
        chosen = np.flatnonzero((rooms == sizes[None]).all(axis=1))
        some = [[part[row] for row in chosen.tolist()] for part in parts]
        cuts = np.cumsum([size * _width(part) for size, part in zip(sizes, some, strict=True)])[:-1]
        rows = side_by_side(some, sizes)
        found = by_blocks(lambda x, _, cuts=cuts: function(*jax.numpy.split(x, cuts, axis=1)), rows)
        for place, row in enumerate(chosen):
            out[row] = jax.tree.map(lambda a, place=place: a[place], found)
    return out


def side_by_side(parts: Sequence[Sequence[np.ndarray]], lengths: Sequence[int]) -> np.ndarray:
    """Rows that hold a padded sequence of each part; vectors of a sequence one after the other."""
    padded = []
    for part, length in zip(parts, lengths, strict=True):
        rows = np.full((len(part), length * _width(part)), PADDING, np.float32)
        for row, sequence in zip(rows, part, strict=True):
            row[: sequence.size] = sequence.ravel()
        padded.append(rows)
    return np.hstack(padded)


def _width(part: Sequence[np.ndarray]) -> int:
    return part[0].shape[1] if part[0].ndim == 2 else 1


def _room(length: int) -> int:
    return max(_SHORTEST, 1 << (length - 1).bit_length())


def _pair(valid: Any) -> Any:
    if not isinstance(valid, tuple | list) or len(valid) != 2:
        raise ValueError("`valid` must be a pair (X, y) of inputs and their targets.")
    return valid


@eqx.filter_jit
def _totals(network: Any, inputs: jax.Array, targets: jax.Array, *, losses: Any) -> jax.Array:
    return losses(network, inputs, targets)[0]
