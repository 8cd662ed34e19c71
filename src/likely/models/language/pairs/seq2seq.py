"""Encoder-decoder: p(target | source) = Π_t p(y_t | y_1 ... y_{t-1}, source), with additive attention or without.

Cho et al. (2014); Sutskever, Vinyals and Le (2014); Bahdanau, Cho and Bengio (2015). Cost of a pair: that of its cells,
and with attention 3 × source × target × units operations.
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
from likely.models.language.pairs.seq2seq_network import END, Seq2SeqNetwork, seq2seq_losses
from likely.models.language.pairs.tokens import are_texts, check_as_many, numbered, read_sequences, vocabulary_of
from likely.nets.recurrent import CELLS


class Seq2Seq(SequencePredictor):
    """One sequence of tokens from another.

    Sources and targets are texts, which are split into characters, or lists of tokens. Tokens of a source that were not
    in `fit` are read as unknown, a vector of zeros.

    Parameters
    ----------
    n_hidden : units of each cell, and of the attention. n_embedding : numbers that a token is read as.
    cell : "gru", "lstm", "peephole" or "rnn".
    bidirectional : read the source both ways.
    attention : look at the whole source at each step; else at its summary.
    n_epochs, batch_size, learning_rate, schedule, gradient_clip : see `likely.training.TrainingConfig`.
    patience : epochs without a better loss on `valid` after which to stop.
    random_state : seed.

    Examples
    --------
    >>> from likely.datasets.named.sequence_tasks import reversal_task
    >>> X, y = reversal_task(100, lengths=(1, 3), letters="ab", seed=0)
    >>> options = {"cell": "rnn", "bidirectional": False, "attention": False, "n_epochs": 40, "learning_rate": 0.02}
    >>> model = Seq2Seq(16, **options, random_state=0)
    >>> model.fit(X, y).predict(["aab"])
    ['baa']
    """

    n_hidden: Count = 64
    _: KW_ONLY
    n_embedding: Count = 32
    cell: Annotated[str, one_of(CELLS)] = "gru"
    bidirectional: bool = True
    attention: bool = True

    _losses = staticmethod(seq2seq_losses)
    _counted = "every token of the target and its end"

    def predict(self, X: Any, max_length: int | None = None) -> list[Any]:
        """The targets by greedy decoding: the likeliest token at each step.

        Parameters
        ----------
        max_length : tokens after which a target that has not ended is cut off; that of the longest in `fit` if None.
        """
        check_is_fitted(self)
        n_steps = self.longest_ + 1 if max_length is None else max_length + 1
        decoded = grouped(partial(_decoded, self.params_, n_steps=n_steps), self._sources(X))
        return [self._spelled(ids) for ids in decoded]

    def score(self, X: Any, y: Any) -> float:
        """Share of the targets that are predicted exactly."""
        wanted = read_sequences(y, "y", may_be_empty=True)
        found = self.predict(X)
        check_as_many(found, wanted)
        return float(np.mean([list(a) == b for a, b in zip(found, wanted, strict=True)]))

    def attention_map(self, source: Any, target: Any) -> np.ndarray:
        """(target + 1, source + 1) where each token of a target looked, and its end; rows sum to one."""
        check_is_fitted(self)
        if not self.attention:
            raise ValueError("this Seq2Seq has no attention: fit one with attention=True.")
        inputs, targets = self._pairs([source], [target])
        (weights,) = grouped(partial(_looks, self.params_), inputs, targets)
        return np.asarray(weights[: len(targets[0]), : len(inputs[0])], np.float64)

    # ------------------------------------------------------------------------- hooks
    def _learn(self, X: Any, y: Any) -> None:
        sources = read_sequences(X, "X", may_be_empty=True)
        targets = read_sequences(y, "y", may_be_empty=True)
        self.source_tokens_, self.target_tokens_ = vocabulary_of(sources, "X"), vocabulary_of(targets, "y")
        self.texts_, self.longest_ = are_texts(y), max(map(len, targets))

    def _pairs(self, X: Any, y: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
        targets = read_sequences(y, "y", may_be_empty=True)
        check_as_many(sources := self._sources(X), targets)
        ids = numbered(targets, self.target_tokens_, name="y", closed=True)
        return sources, [np.append(target, END) for target in ids]

    def _sources(self, X: Any) -> list[np.ndarray]:
        """Numbers of the tokens, and one more that ends the source, so that none is empty."""
        ids = numbered(read_sequences(X, "X", may_be_empty=True), self.source_tokens_)
        return [np.append(source, len(self.source_tokens_) + 1) for source in ids]

    def _network(self, key: jax.Array) -> Seq2SeqNetwork:
        return Seq2SeqNetwork.build(
            key,
            len(self.source_tokens_) + 1,
            len(self.target_tokens_),
            n_embedding=self.n_embedding,
            n_hidden=self.n_hidden,
            kind=self.cell,
            bidirectional=self.bidirectional,
            attention=self.attention,
        )

    def _spelled(self, ids: np.ndarray) -> Any:
        ends = np.flatnonzero(ids == END)
        tokens = [self.target_tokens_[i - 1] for i in ids[: ends[0] if len(ends) else len(ids) - 1]]
        return "".join(tokens) if self.texts_ else tokens


@eqx.filter_jit
def _decoded(network: Seq2SeqNetwork, sources: jax.Array, *, n_steps: int) -> jax.Array:
    return network.decode(sources.astype(jnp.int32), n_steps)


@eqx.filter_jit
def _looks(network: Seq2SeqNetwork, sources: jax.Array, targets: jax.Array) -> jax.Array:
    _, weights = network.teach(sources.astype(jnp.int32), targets.astype(jnp.int32))
    assert weights is not None  # for the type checker
    return weights
