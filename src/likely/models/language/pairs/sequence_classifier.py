"""A label for a whole sequence: softmax of the last output of a recurrent cell, or of the root of a balanced tree.

Cost: that of a cell at each token, one after the other; a tree has ceil(log2 τ) levels of compositions in parallel.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from likely.contract.scikit_learn import ClassifierMixin
from likely.contract.sequence_predictor import SequencePredictor, grouped
from likely.contract.settings import Count, one_of
from likely.models.language.pairs.label_network import LabelNetwork, TreeNetwork, class_losses
from likely.models.language.pairs.tokens import check_as_many, numbered, read_sequences, vocabulary_of
from likely.nets.mlp import MLP
from likely.nets.reader import Reader
from likely.nets.recurrent import CELLS


class SequenceClassifier(ClassifierMixin, SequencePredictor):
    """Classes of sequences of tokens.

    Sequences are texts, which are split into characters, or lists of tokens. Tokens that were not in `fit` are read as
    unknown, a vector of zeros.

    Parameters
    ----------
    n_hidden : units of the cell, or numbers of a tree's node. n_embedding : numbers that a token is read as; a tree's
        tokens are as large as its nodes.
    cell : "gru", "lstm", "peephole", "rnn"; or "tree", a balanced tree with one layer that composes all pairs.
    bidirectional : read both ways; no matter for a tree.
    n_epochs, batch_size, learning_rate, schedule, gradient_clip : see `likely.training.TrainingConfig`.
    patience : epochs without a better loss on `valid` after which to stop.
    random_state : seed.

    Examples
    --------
    Which letter comes first, remembered to the end:

    >>> X = ["abab", "baab", "abb", "bab", "aa", "bb", "aabb", "bbaa"]
    >>> y = [x[0] for x in X]
    >>> model = SequenceClassifier(8, cell="rnn", n_epochs=60, learning_rate=0.02, random_state=0)
    >>> model.fit(X, y).predict(["abbb", "baaa"]).tolist()
    ['a', 'b']
    """

    n_hidden: Count = 64
    _: KW_ONLY
    n_embedding: Count = 32
    cell: Annotated[str, one_of({*CELLS, "tree"})] = "gru"
    bidirectional: bool = False

    _losses = staticmethod(class_losses)
    _counted = "the label"

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """(n, n_classes) log P(class | sequence)."""
        check_is_fitted(self)
        inputs = numbered(read_sequences(X, "X"), self.tokens_)
        return np.array(grouped(partial(_whole, self.params_), inputs), np.float64)

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, n_classes) P(class | sequence), in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """(n,) the likeliest class."""
        likeliest = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[likeliest]

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in order."""
        if "labels_" not in vars(self):
            raise AttributeError("classes_ are known after fit.")
        return np.array(self.labels_, dtype=self.label_type_)

    # ------------------------------------------------------------------------- hooks
    def _learn(self, X: Any, y: Any) -> None:
        self.tokens_ = vocabulary_of(read_sequences(X, "X"), "X")
        classes = np.unique(column_or_1d(y))
        if len(classes) < 2:
            raise ValueError(f"y must have at least two classes, got {classes.tolist()}.")
        self.labels_, self.label_type_ = classes.tolist(), classes.dtype.str

    def _pairs(self, X: Any, y: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
        tokens, labels = read_sequences(X, "X"), column_or_1d(y).tolist()
        check_as_many(tokens, labels)
        codes = numbered([[label] for label in labels], self.labels_, name="y", closed=True)
        return numbered(tokens, self.tokens_), [code - 1 for code in codes]

    def _network(self, key: jax.Array) -> LabelNetwork | TreeNetwork:
        if self.cell == "tree":
            return TreeNetwork.build(key, len(self.tokens_), self.n_hidden, len(self.labels_))
        reader_key, output_key = jax.random.split(key)
        reader = Reader(
            reader_key,
            len(self.tokens_),
            self.n_embedding,
            self.n_hidden,
            kind=self.cell,
            bidirectional=self.bidirectional,
        )
        return LabelNetwork(reader, MLP(output_key, reader.n_outputs, len(self.labels_)))


@eqx.filter_jit
def _whole(network: LabelNetwork | TreeNetwork, inputs: jax.Array) -> jax.Array:
    return network.whole(inputs.astype(jnp.int32))
