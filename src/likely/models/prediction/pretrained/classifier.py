"""A classifier that learns features without labels first: P(class | x) = softmax(h_L V + a), h_l = σ(h_{l-1} W_l + b_l)

Hinton, Osindero and Teh (2006); Bengio et al. (2007); Erhan et al. (2010) on why it helps; dropout by Srivastava et al.
(2014). The layers start from `likely.pretrain` on all rows, labelled or not; then all of them, and the softmax, learn
from the labelled rows. Cost of an epoch of fine-tuning: 6 × labelled rows × weights floating-point operations.
"""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY
from functools import partial
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import log_softmax
from sklearn.utils import TransformerTags

from likely.columns import Cells, Columns
from likely.contract.estimator import Arrays, FitRun
from likely.contract.labels import UNKNOWN
from likely.contract.predictor import Predictor
from likely.contract.scikit_learn import TransformerMixin
from likely.contract.settings import (
    Count,
    Decay,
    Fraction,
    NonNegative,
    Positive,
    Share,
    Sizes,
    one_of,
)
from likely.contract.trained import Trained, between, epochs_for
from likely.models.energy.harmonium.rbm import moments
from likely.models.prediction.pretrained.finetuning import cross_entropy, validation_loss
from likely.models.prediction.pretrained.inputs import as_bits, cells_of, check_probabilities
from likely.models.prediction.pretrained.network import Encoder, Network, first_encoder, first_top
from likely.models.prediction.pretrained.pretraining import (
    KINDS,
    PretrainedStack,
    Recipe,
    check_layers,
    encode,
    learn_layers,
)
from likely.runtime import by_blocks
from likely.schema import Schema
from likely.training import train
from likely.training.optimisers import Optimizer, Schedule

_STREAMS = ("start", "split", "train")  # of randomness; the layers' pretraining has the seed's own


class PretrainedClassifier(TransformerMixin, Trained, Predictor):
    """Sigmoid layers pretrained without labels, a softmax on top, all fine-tuned with the labels that there are.

    Parameters
    ----------
    layers : units of the hidden layers; () is softmax regression.
    kind : what the layers are pretrained as, "rbm" or "autoencoder"; see `likely.pretrain`.
    pretrain : True; False to start from random weights; or a `PretrainedStack` of `likely.pretrain`, to start from
        its layers, which must then be as many and as large.
    n_pretraining_epochs, pretraining_rate, sparsity_target, sparsity_strength, corruption : of the pretraining of each
        layer, see `likely.pretrain`.
    dropout, input_dropout : shares of the units of each hidden layer and of the inputs that a step leaves out.
    n_epochs, batch_size, optimizer, learning_rate, schedule, weight_decay, averaging : of the fine-tuning, see
        `likely.training.TrainingConfig`. The pretraining has the same batches, of 100 rows where batch_size is None.
    patience : epochs without a better validation loss after which to stop; the best epoch is kept. Without `valid`
        rows given to `fit`, a share `validation_fraction` of each class's labelled rows is held out for it.
    validation_fraction : that share.
    as_probabilities : real columns hold numbers from 0 to 1, such as grey pixels, and are read as probabilities.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Attributes
    ----------
    classes_ : the classes. params_ : the network, a frozen module of arrays. history_ : the fine-tuning's curves.
    schema_, cells_ : what the columns are, and how their values become cells. seed_ : the seed of `random_state`.

    Examples
    --------
    A hundred labels, and 900 rows without:

    >>> import likely, numpy as np
    >>> digits = likely.datasets.load("digits")
    >>> y = np.where(np.arange(1000) < 100, digits.labels["train"], -1)
    >>> model = PretrainedClassifier((50,), n_epochs=100, random_state=0).fit(digits.train, y)
    >>> model.score(digits.test, digits.labels["test"]) > 0.8
    True
    """

    layers: Sizes = (500, 500, 1000)
    _: KW_ONLY
    kind: Annotated[str, one_of(KINDS)] = "rbm"
    pretrain: bool | PretrainedStack = True
    n_pretraining_epochs: Count = 50
    pretraining_rate: Positive | None = None
    sparsity_target: Share | None = None
    sparsity_strength: NonNegative = 5.0
    corruption: Fraction = 0.25
    dropout: Fraction = 0.0
    input_dropout: Fraction = 0.0
    n_epochs: Count = 200
    batch_size: Count | None = 20
    optimizer: Optimizer = "adam"
    learning_rate: Positive | None = 3e-3
    schedule: Schedule = "cosine"
    weight_decay: NonNegative = 0.0
    averaging: Decay | None = None
    patience: Count | None = None
    validation_fraction: Share = 0.1
    as_probabilities: bool = False
    schema: Schema | None = None

    _resumable = True
    _target_kind = "class"
    _uses_unlabelled = True
    _minus_is_unknown = True
    _method = "softmax of the network"

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        sizes = {"layers": (between(16, n_columns, 200),), "n_epochs": epochs_for(100_000, n_rows)}
        return sizes | {"n_pretraining_epochs": epochs_for(50_000, n_rows), "batch_size": 50, "patience": 10}

    # -------------------------------------------------------------------------- learning
    def _check(self) -> None:
        sizes, stack = check_layers(self.layers, least=0), self.pretrain
        self._recipe()
        self._training()
        if not isinstance(stack, PretrainedStack):
            return
        if sizes != stack.layers:
            raise ValueError(f"`layers` must be those of the stack, {stack.layers}, got {sizes}.")
        if self.as_probabilities != stack.table.as_probabilities:
            raise ValueError(f"`as_probabilities` must be the stack's, {stack.table.as_probabilities}.")

    def _fit(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array, run: FitRun) -> Network:
        sizes = check_layers(self.layers, least=0)
        taught, others = self._divide(rows, targets, run.valid)
        encoder = self._start(rows, self.columns_, sizes, self._recipe())
        result = train(
            Network(encoder, first_top(encoder, len(self.classes_))),
            partial(cross_entropy, dropout=float(self.dropout), input_dropout=float(self.input_dropout)),
            taught,
            config=self._training(patience=None if others is None else self.patience),
            key=self._own_key("train"),
            validate=None if others is None else validation_loss,
            valid_rows=others,
            checkpoint=run.checkpoint,
            resume=run.resume,
            label="fine-tuning",
        )
        self.history_ = result.history
        return result.module

    def _divide(self, rows: np.ndarray, targets: np.ndarray, valid: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Labelled rows to learn from, and those to validate by, if any; the label is the last column of both."""
        labelled = ~np.isnan(targets[:, 0])
        if valid is not None:
            return np.hstack([rows[labelled], targets[labelled]]), np.hstack(valid)
        if self.patience is None:
            return np.hstack([rows[labelled], targets[labelled]]), None
        codes = np.where(labelled, targets[:, 0], UNKNOWN).astype(int)
        held = _held_out(codes, self.validation_fraction, self._own_key("split"))
        if not held.any():
            raise ValueError(
                f"`validation_fraction` {self.validation_fraction} of each class's labelled rows is less than one row: "
                "raise it, give `valid` rows to fit, or set patience=None."
            )
        own = labelled & ~held
        return np.hstack([rows[own], targets[own]]), np.hstack([rows[held], targets[held]])

    def _start(self, rows: np.ndarray, columns: Columns, sizes: tuple[int, ...], recipe: Recipe) -> Encoder:
        """The layers that fine-tuning starts from."""
        if isinstance(self.pretrain, PretrainedStack):
            return self.pretrain.encoder
        if self.pretrain and sizes:
            return learn_layers(rows, columns, sizes, recipe, self.seed_)[0]
        mean, variance = moments(rows, columns)
        linear = ~columns.is_quadratic
        return first_encoder(self._own_key("start"), columns, sizes, mean[linear], jnp.sqrt(variance[linear]))

    def _recipe(self) -> Recipe:
        return Recipe(
            kind=self.kind,
            n_epochs=self.n_pretraining_epochs,
            batch_size=100 if self.batch_size is None else self.batch_size,
            learning_rate=self.pretraining_rate,
            sparsity_target=self.sparsity_target,
            sparsity_strength=self.sparsity_strength,
            corruption=self.corruption,
        )

    # ----------------------------------------------------------------------------- using
    def _log_proba(self, rows: np.ndarray, key: jax.Array) -> np.ndarray:
        """NaN cells are read as their column's mean."""
        logits = by_blocks(lambda x, observed: _logits(self.params_, x, observed), rows)
        return log_softmax(np.asarray(logits, np.float64), axis=1)

    def transform(self, X: Any) -> np.ndarray:
        """(n_rows, units) the highest layer's probabilities: the features that the softmax reads."""
        rows = self._inputs(X)
        return encode(self.params_.encoder, rows)

    def _to_file(self) -> tuple[Arrays, dict[str, Any]]:
        """A `PretrainedStack` given as `pretrain` is not in the file: its layers, fine-tuned, are the network's."""
        written = copy.copy(self)
        written.pretrain = written.pretrain if isinstance(written.pretrain, bool) else True
        return super(PretrainedClassifier, written)._to_file()

    # -------------------------------------------------------------------------- plumbing
    def _init(self, key: jax.Array, columns: Columns) -> Network:
        encoder = first_encoder(key, columns, tuple(self.layers))
        return Network(encoder, first_top(encoder, len(self.classes_)))

    def _given_schema(self, X: Any) -> Schema:
        if isinstance(self.pretrain, PretrainedStack):
            return self.pretrain.table.schema
        schema = super()._given_schema(X)
        return schema.plain_numbers() if self.as_probabilities else schema

    def _fit_cells(self, encoded: np.ndarray, weight: np.ndarray | None = None) -> Cells:
        if isinstance(self.pretrain, PretrainedStack):
            return self.pretrain.table.cells
        return cells_of(encoded, self.schema_, self.as_probabilities)

    def _restored_cells(self, cells: Cells) -> Cells:
        return as_bits(cells) if self.as_probabilities else cells

    def _standard(self, encoded: np.ndarray) -> np.ndarray:
        if self.as_probabilities:
            check_probabilities(self.schema_, encoded)
        return super()._standard(encoded)

    def _own_key(self, stream: str) -> jax.Array:
        # A number that is none of the layers', which are numbered from 0, gives another key than theirs.
        return jax.random.fold_in(jax.random.fold_in(jax.random.key(self.seed_), 2**31 - 1), _STREAMS.index(stream))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        return tags


def _held_out(codes: np.ndarray, fraction: float, key: jax.Array) -> np.ndarray:
    """A share of the rows of each class, at random, never all of them."""
    held = np.zeros(len(codes), dtype=bool)
    order = np.asarray(jax.random.permutation(key, len(codes)))
    for code in range(int(codes.max()) + 1):
        own = order[codes[order] == code]
        held[own[: min(round(fraction * len(own)), len(own) - 1)]] = True
    return held


@eqx.filter_jit
def _logits(network: Network, x: jax.Array, observed: jax.Array | None) -> jax.Array:
    return network.logits(x, observed)
