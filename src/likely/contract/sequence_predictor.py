"""The contract of models of p(target | input) for sequences: fit, evidence, save; training, padding, files live here.

A model writes hooks: `_learn` looks at the data (vocabularies, sizes), `_pairs` turns inputs and targets into arrays,
`_network` builds the parameters, and `_losses` is a pure function of them and of padded rows. How to predict is left to
the model.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.contract.estimator import Arrays
from likely.contract.evidence import Evidence
from likely.contract.fingerprint import Fingerprint
from likely.contract.settings import Count, Positive, seed_of
from likely.contract.trained import Trained
from likely.objectives.sequence_loss import PADDING, mean_sequence_loss, sequence_loss
from likely.runtime import by_blocks
from likely.schema import Measure
from likely.storage.modules import describe_estimator, restore_estimator, restore_module, save_module
from likely.training import train
from likely.training.optimisers import Schedule
from likely.training.progress import showing

# What an evidence is a probability of. It is not that of text, log p(target) on its own, and refuses to be compared.
CONDITIONAL_MEASURE = Measure("counting").conditional("target", "input")
# A program is compiled for each padded length. Powers of two make them few; below eight steps a program of its own
# would cost more than the steps that it saves.
_LEAST_PADDED_LENGTH = 8


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
    _losses: ClassVar[Callable[..., Any]]  # (network, inputs, targets) -> (n,) sums of -log p, (n,) of how many terms
    _counted: ClassVar[str] = "every token of the target"  # what those terms are, for people

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
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        valid: Any = None,
        checkpoint: Any = None,
        resume: Any = None,
        progress: bool | None = None,
    ) -> Any:
        """Learn the targets y from the inputs X.

        Parameters
        ----------
        X, y : as many inputs as targets; see the class.
        valid : (X, y) of further pairs: the epoch with the least loss on them is kept.
        checkpoint, resume : where to save the run (a path or a `likely.Checkpoint`), and one to go on from.
        progress : as in `likely.Model.fit`.
        """
        self._validate_params()
        if self.patience is not None and valid is None:
            raise ValueError("`patience` needs pairs to wait for: give `valid` to fit, or set patience=None.")
        # What was learned before belongs to other vocabularies: a fit that fails now leaves an unfitted model.
        self.__dict__.pop("params_", None)
        self._learn(X, y)
        pairs = self._pairs(X, y)
        others = None if valid is None else self._pairs(*_pair(valid))
        self.seed_ = seed_of(self.random_state)
        with showing(progress):
            result = self._train(pairs, others, checkpoint, resume)
        self.params_, self.history_ = result.module, result.history
        return self

    def evidence(self, X: Any, y: Any) -> Evidence:
        """Exact log p(target | input) of each pair in nats.

        Two models compare on the same pairs, whatever vocabularies they have. With the evidence of text there is no
        comparison: log p(target | input) and log p(target) answer different questions, and `measure` says so.
        """
        check_is_fitted(self)
        inputs, targets = self._pairs(X, y)
        return Evidence.exact(
            self._log_prob(inputs, targets),
            method=f"{type(self).__name__}, counting {self._counted}",
            measure=CONDITIONAL_MEASURE,
            dimensions=[target.size for target in targets],
            fingerprint=_fingerprint(X, y),
        )

    def score_samples(self, X: Any, y: Any) -> np.ndarray:
        """(n,) the evidence's values: exact log p(target | input) in nats."""
        return self.log_prob(X, y)

    def log_prob(self, X: Any, y: Any) -> np.ndarray:
        """(n,) exact log p(target | input) in nats."""
        check_is_fitted(self)
        return self._log_prob(*self._pairs(X, y))

    # ------------------------------------------------------------------------- plumbing
    def __sklearn_is_fitted__(self) -> bool:
        # Vocabularies are set before training: with them alone it is not fitted.
        return "params_" in vars(self)

    def _train(self, pairs: Any, others: Any, checkpoint: Any, resume: Any) -> Any:
        """The result of the training loop on pairs, and on `others` to validate by, if there are any."""
        start_key, train_key = jax.random.split(jax.random.key(self.seed_))
        widths = [max(map(len, part)) for part in pairs]
        if others is not None:
            widths = [max(width, *map(len, part)) for width, part in zip(widths, others, strict=True)]
        options: dict[str, Any] = {"losses": type(self)._losses, "split": widths[0] * _width(pairs[0])}
        return train(
            eqx.filter_jit(self._network)(start_key),
            partial(sequence_loss, **options),
            side_by_side(pairs, widths),
            config=self._training(),
            key=train_key,
            validate=None if others is None else partial(mean_sequence_loss, **options),
            valid_rows=None if others is None else side_by_side(others, widths),
            checkpoint=checkpoint,
            resume=resume,
        )

    def _log_prob(self, inputs: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> np.ndarray:
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
    return max(_LEAST_PADDED_LENGTH, 1 << (length - 1).bit_length())


def _fingerprint(X: Any, y: Any) -> Fingerprint:
    """A short name for inputs and targets as they were given, whatever a model's vocabulary makes of them.

    A text and the list of its characters are the same sequence, and so are bits as numbers of any type.
    """
    inputs, targets = ([_plain(list(item) if isinstance(item, str) else item) for item in part] for part in (X, y))
    return Fingerprint.of_texts([json.dumps(pair) for pair in zip(inputs, targets, strict=True)], "pairs of sequences")


def _plain(value: Any) -> Any:
    """Tokens, labels or bits as lists of strings and numbers, whole numbers without a point."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_plain(one) for one in value]
    is_whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole else value


def _pair(valid: Any) -> Any:
    if not isinstance(valid, tuple | list) or len(valid) != 2:
        raise ValueError("`valid` must be a pair (X, y) of inputs and their targets.")
    return valid


@eqx.filter_jit
def _totals(network: Any, inputs: jax.Array, targets: jax.Array, *, losses: Any) -> jax.Array:
    return losses(network, inputs, targets)[0]
