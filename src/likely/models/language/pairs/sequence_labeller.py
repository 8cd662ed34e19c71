"""A label for each token: p(labels | tokens) = Π_t softmax(W [h_t, g_t] + b), h read forwards and g backwards.

Schuster and Paliwal (1997); Graves and Schmidhuber (2005). Cost of a token: that of its two cells.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.contract.sequence_predictor import SequencePredictor, grouped
from likely.contract.settings import Count, one_of
from likely.models.language.pairs.label_network import LabelNetwork, label_losses
from likely.models.language.pairs.tokens import are_texts, check_as_many, numbered, read_sequences, vocabulary_of
from likely.nets.mlp import MLP
from likely.nets.reader import Reader
from likely.nets.recurrent import CELLS


class SequenceLabeller(SequencePredictor):
    """Labels of the tokens of sequences.

    Inputs are texts, which are split into characters, or lists of tokens; labels are strings or whole numbers, as many
    as tokens. Tokens that were not in `fit` are read as unknown, a vector of zeros.

    Parameters
    ----------
    n_hidden : units of each cell. n_embedding : numbers that a token is read as.
    cell : "gru", "lstm", "peephole" or "rnn".
    bidirectional : read both ways; else a label knows only the tokens up to its own.
    n_epochs, batch_size, learning_rate, schedule, gradient_clip : see `likely.training.TrainingConfig`.
    patience : epochs without a better loss on `valid` after which to stop.
    random_state : seed.

    Examples
    --------
    Whether the neighbour on the right is the same letter, which only the way back knows:

    >>> X = ["aab", "abb", "bba", "baa", "aaa", "bab"]
    >>> y = ["+--", "-+-", "+--", "-+-", "++-", "---"]
    >>> model = SequenceLabeller(8, cell="rnn", n_epochs=100, learning_rate=0.02, random_state=0)
    >>> model.fit(X, y).predict(["abba"])
    ['-+--']
    """

    n_hidden: Count = 64
    _: KW_ONLY
    n_embedding: Count = 32
    cell: Annotated[str, one_of(CELLS)] = "gru"
    bidirectional: bool = True

    _losses = staticmethod(label_losses)
    _counted = "every label"

    def predict_log_proba(self, X: Any) -> list[np.ndarray]:
        """Of each sequence, (tokens, labels) log-probabilities in the order of `labels_`."""
        check_is_fitted(self)
        inputs = numbered(read_sequences(X, "X"), self.tokens_)
        found = grouped(partial(_along, self.params_), inputs)
        return [np.asarray(row[: len(x)], np.float64) for row, x in zip(found, inputs, strict=True)]

    def predict(self, X: Any) -> list[Any]:
        """The likeliest label of each token; texts if `fit` saw texts as labels."""
        chosen = [row.argmax(axis=1) for row in self.predict_log_proba(X)]
        labels = [[self.labels_[code] for code in codes] for codes in chosen]
        return ["".join(row) for row in labels] if self.texts_ else labels

    def score(self, X: Any, y: Any) -> float:
        """Share of all tokens whose label is predicted."""
        wanted, found = read_sequences(y, "y"), self.predict(X)
        _check_lengths(found, wanted)
        return float(np.mean([a == b for u, v in zip(found, wanted, strict=True) for a, b in zip(u, v, strict=True)]))

    # ------------------------------------------------------------------------- hooks
    def _learn(self, X: Any, y: Any) -> None:
        tokens, labels = read_sequences(X, "X"), read_sequences(y, "y")
        self.tokens_, self.labels_ = vocabulary_of(tokens, "X"), vocabulary_of(labels, "y")
        self.texts_ = are_texts(y)

    def _pairs(self, X: Any, y: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
        tokens, labels = read_sequences(X, "X"), read_sequences(y, "y")
        _check_lengths(tokens, labels)
        codes = numbered(labels, self.labels_, name="y", closed=True)
        return numbered(tokens, self.tokens_), [row - 1 for row in codes]

    def _network(self, key: jax.Array) -> LabelNetwork:
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


def _check_lengths(tokens: list[Any], labels: list[Any]) -> None:
    check_as_many(tokens, labels)
    for number, (own, given) in enumerate(zip(tokens, labels, strict=True)):
        if len(own) != len(given):
            raise ValueError(f"sequence {number} has {len(own)} tokens and {len(given)} labels: give as many.")


@eqx.filter_jit
def _along(network: LabelNetwork, inputs: jax.Array) -> jax.Array:
    return network.along(inputs.astype(jnp.int32))
