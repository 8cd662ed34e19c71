"""Recurrent language model: p(w_1 ... w_n </s>) = Π p(w_t | h_t), h_t = cell(h_{t-1}, w_{t-1}), p a softmax.

Mikolov et al. (2010); Zaremba, Sutskever and Vinyals (2014). Trained by truncated backpropagation along streams of
text; every sentence begins from a state of zeros, so its evidence depends on nothing else. Cost: a token takes about
6 x (weights of the cells + V h) floating-point operations to learn; with noise contrast k h in place of V h.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from likely.contract.model import FitRun
from likely.contract.sequence_model import SequenceModel
from likely.contract.settings import Count, Decay, Fraction, NonNegative, Positive, Sizes, are_sizes, one_of
from likely.contract.trained import EarlyStopped
from likely.datasets import Encoded
from likely.datasets.text.vocabulary import BEGIN_ID, END_ID
from likely.models.language.recurrent.generation import Choice, generate
from likely.models.language.recurrent.network import LanguageNetwork
from likely.montecarlo.alias import AliasTable, alias_table
from likely.nets.recurrent import CELLS, SQUASHINGS
from likely.objectives.next_token import NO_TARGET, Stream, next_token, token_loss
from likely.runtime import on_device, use_compilation_cache
from likely.storage.modules import restore_module, save_module
from likely.training import TrainingConfig, train
from likely.training.optimisers import Schedule

_LOG_ODDS_OF_NEVER = -1e4  # Of <s> as a next token: exp of it is 0 in single precision, and its gradient is finite.
# Cells read this many tokens together, sentences side by side, which makes their products large enough to be fast. The
# scores of all V words are made for fewer at a time, so that they stay in the cache.
_TOKENS_READ, _TOKENS_SCORED = 1024, 128
_LEAST_PADDED_LENGTH = 16  # Sentences are padded to this times a power of two: few programs serve all lengths.

use_compilation_cache()


class RecurrentLM(EarlyStopped, SequenceModel):
    """Language model with recurrent cells.

    Parameters
    ----------
    layers : sizes of the cells, the lowest first.
    cell : "lstm", "gru", "peephole" (an LSTM whose gates see the memory) or "rnn".
    squashing : of an LSTM's input, "tanh" or "sigmoid".
    n_embedding : size of the embeddings; None takes that of the top cell.
    tied : the embeddings are the output weights too (Press and Wolf, 2017); then `n_embedding` is the top's size.
    dropout : share of cells of embeddings and outputs that are left out while learning.
    output : "softmax", or "nce": learned by noise contrast against the unigram distribution; its evidence is normalised
        all the same. n_noise : words that "nce" draws as noise.
    length : tokens that gradients go back. n_streams : stretches of text in a batch.
    n_epochs, learning_rate, schedule, gradient_clip, weight_decay, averaging, patience, validate_every : see
        `likely.training.TrainingConfig`; the optimiser is Adam.
    min_count, max_vocabulary : which tokens are known, where `fit` is given no vocabulary.
    memory_budget : bytes of text that are held in memory.
    random_state : seed.

    Examples
    --------
    >>> model = RecurrentLM((16,), n_epochs=60, length=4, n_streams=2, learning_rate=0.03, random_state=0)
    >>> model = model.fit(["a b c", "a b d"] * 4)
    >>> round(float(model.perplexity(["a b c", "a b d"])), 1)      # two equally likely sentences of 4 tokens: 2^(1/4)
    1.2
    >>> model.sample(1, random_state=0)[0].startswith("a b")
    True
    """

    layers: Sizes = (200,)
    _: KW_ONLY
    cell: Annotated[str, one_of(CELLS)] = "lstm"
    squashing: Annotated[str, one_of(SQUASHINGS)] = "tanh"
    n_embedding: Count | None = None
    tied: bool = False
    dropout: Fraction = 0.0
    output: Literal["softmax", "nce"] = "softmax"
    n_noise: Count = 100
    length: Count = 35
    n_streams: Count = 20
    n_epochs: Count = 20
    learning_rate: Positive = 2e-3
    schedule: Schedule = "cosine"
    gradient_clip: Positive | None = 1.0
    weight_decay: NonNegative = 0.0
    averaging: Decay | None = None
    memory_budget: Count = 1 << 30

    _resumable = True
    _why_not: ClassVar[dict[str, str]] = {
        "condition": "what stands before a gap is summed up in a state that knows nothing of what stands after it",
        "impute": "what stands before a gap is summed up in a state that knows nothing of what stands after it",
    }

    def generate(
        self,
        n: int = 1,
        *,
        prompt: Any = None,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        max_length: int = 100,
        random_state: int | None = None,
    ) -> list[Any]:
        """N sentences, as `sample` gives them, but from a sharpened distribution of each next token.

        Parameters
        ----------
        temperature : scores are divided by it; below 1 likely tokens become likelier.
        top_k : only so many of the likeliest tokens. top_p : only the likeliest that together have this probability
            ("nucleus"; Holtzman et al., 2020).
        """
        choice, start = Choice(temperature, top_k, top_p).checked(), self._prompted(n, prompt)
        drawn = generate(self._stream("sample", random_state), self.params_, n, start, max_length, choice)
        return [self._spelled([*start, *ids]) for ids in drawn]

    # ------------------------------------------------------------------- hooks
    def _fit(self, encoded: Encoded, seed: int, run: FitRun) -> LanguageNetwork:
        self._check(encoded)
        key, train_key = jax.random.split(jax.random.key(seed))
        unigram = _unigram(encoded)
        module = _with_bias(eqx.filter_jit(self._network)(key, len(encoded.vocabulary.tokens)), unigram.log_prob)
        n_streams = min(self.n_streams, max(1, len(encoded.tokens) // self.length))
        noise = None if self.output == "softmax" else jax.tree.map(jnp.asarray, unigram)
        has_valid = run.valid is not None
        result = train(
            module,
            partial(next_token, start=BEGIN_ID, dropout=self.dropout, noise=noise, n_noise=self.n_noise),
            stretched(encoded, n_streams, self.length),
            config=self._training(
                batch_size=n_streams,
                shuffle=False,
                patience=self.patience if has_valid else None,
                memory_budget=TrainingConfig.memory_budget,  # The model's own setting is about text.
            ),
            key=train_key,
            state=Stream(module.first(n_streams)),
            validate=partial(token_loss, start=BEGIN_ID) if has_valid else None,
            valid_rows=stretched(run.valid, n_streams, self.length) if has_valid else None,
            checkpoint=run.checkpoint,
            resume=run.resume,
        )
        self.history_ = result.history
        return result.module

    def _token_scores(self, encoded: Encoded) -> np.ndarray:
        out = np.full(len(encoded.tokens), np.nan)
        lengths = np.diff(encoded.offsets)
        holed = np.zeros(len(encoded), bool)
        holed[np.searchsorted(encoded.offsets, encoded.gaps, side="right") - 1] = True
        room = _LEAST_PADDED_LENGTH * 2 ** np.ceil(np.log2(np.maximum(lengths / _LEAST_PADDED_LENGTH, 1))).astype(int)
        for size in np.unique(room):
            chosen = np.flatnonzero((room == size) & ~holed)
            together = max(1, _TOKENS_READ // int(size))
            for start in range(0, len(chosen), together):
                self._score_some(encoded, chosen[start : start + together], together, int(size), out)
        return out

    def _score_some(self, encoded: Encoded, which: np.ndarray, n: int, size: int, out: np.ndarray) -> None:
        tokens = np.full((n, size + 1), END_ID, np.int32)
        tokens[:, 0] = BEGIN_ID
        for place, number in enumerate(which):
            sentence = encoded[number]
            tokens[place, 1 : len(sentence) + 1] = sentence
        scores = np.asarray(_log_probs(self.params_, on_device(tokens)), np.float64)
        for place, number in enumerate(which):
            begin, end = encoded.offsets[number], encoded.offsets[number + 1]
            out[begin:end] = scores[place, : end - begin]

    def _next_log_probs(self, ids: np.ndarray) -> np.ndarray:
        # Padded, so that sentences of many lengths share a compiled loop.
        room = _LEAST_PADDED_LENGTH * 2 ** max(0, math.ceil(math.log2(len(ids) / _LEAST_PADDED_LENGTH)))
        tokens = np.full((1, room), END_ID, np.int32)
        tokens[0, 0], tokens[0, 1 : len(ids)] = BEGIN_ID, ids[:-1]
        return np.asarray(_all_log_probs(self.params_, on_device(tokens)), np.float64)[0, : len(ids)]

    def _sample(self, seed: int, n: int, prompt: list[int], max_length: int) -> list[list[int]]:
        return generate(seed, self.params_, n, prompt, max_length, Choice())

    def _describe(self) -> str:
        return f"{self.cell.upper()} {'-'.join(map(str, self.layers))}"

    def _arrays(self) -> dict[str, np.ndarray]:
        return save_module(self.params_)

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> LanguageNetwork:
        n_tokens = len(self.vocabulary_.tokens)
        return restore_module(jax.eval_shape(lambda key: self._network(key, n_tokens), jax.random.key(0)), arrays)

    def _network(self, key: jax.Array, n_tokens: int) -> LanguageNetwork:
        sizes = tuple(int(size) for size in self.layers)
        width = self.n_embedding or sizes[-1]
        return LanguageNetwork.build(
            key, n_tokens, width, sizes, kind=self.cell, squashing=self.squashing, tied=self.tied
        )

    def _check(self, encoded: Encoded) -> None:
        if not self.layers or not are_sizes(self.layers):
            raise ValueError(f"`layers` must hold sizes of cells, whole numbers of at least 1, got {self.layers!r}.")
        if self.tied and self.n_embedding not in (None, self.layers[-1]):
            raise ValueError(
                f"with `tied` embeddings have the top's size, {self.layers[-1]}, got n_embedding={self.n_embedding}."
            )
        if len(encoded.gaps):
            raise ValueError("the text has gaps (None), and a recurrent network needs every token to go on: drop them.")


@eqx.filter_jit
def _log_probs(module: LanguageNetwork, tokens: jax.Array) -> jax.Array:
    """Log p of every token but the first of each row, block by block, so that scores of all words stay in the cache."""
    outputs, _ = module.unroll(tokens[:, :-1], module.first(len(tokens)))
    parts = outputs.reshape(-1, _TOKENS_SCORED, outputs.shape[-1]), tokens[:, 1:].reshape(-1, _TOKENS_SCORED)
    return lax.map(lambda part: module.log_probs(*part), parts).reshape(len(tokens), -1)


@eqx.filter_jit
def _all_log_probs(module: LanguageNetwork, tokens: jax.Array) -> jax.Array:
    """Log p of every token after each token of each row."""
    outputs, _ = module.unroll(tokens, module.first(len(tokens)))
    return jax.nn.log_softmax(module.logits(outputs))


def stretched(encoded: Encoded, n_streams: int, length: int) -> np.ndarray:
    """Rows (n_stretches x n_streams, 2 length): the inputs of a stretch, then its targets, stretch after stretch.

    The text is cut into streams side by side, and each stream into stretches. What is missing at the end are targets
    that are not there.
    """
    tokens = np.asarray(encoded.tokens)
    inputs = np.empty_like(tokens)
    inputs[1:], inputs[encoded.offsets[:-1]] = tokens[:-1], BEGIN_ID
    n_stretches = -(-len(tokens) // (n_streams * length))
    room = n_streams * n_stretches * length
    parts = []
    for part, filler in ((inputs, END_ID), (tokens, NO_TARGET)):
        padded = np.full(room, filler, np.float32)
        padded[: len(part)] = part
        parts.append(padded.reshape(n_streams, n_stretches, length))
    rows = np.concatenate(parts, axis=2)
    return np.ascontiguousarray(rows.swapaxes(0, 1)).reshape(n_stretches * n_streams, 2 * length)


def _with_bias(module: LanguageNetwork, log_shares: np.ndarray) -> LanguageNetwork:
    """The network with words as frequent as in the text from the start, and <s> never."""
    bias = on_device(np.maximum(log_shares, _LOG_ODDS_OF_NEVER), module.bias.dtype)
    return eqx.tree_at(lambda m: m.bias, module, bias)


def _unigram(encoded: Encoded) -> AliasTable:
    """Tokens by their frequencies; every one but <s> is possible."""
    counts = np.bincount(np.asarray(encoded.tokens), minlength=len(encoded.vocabulary.tokens)).astype(np.float64)
    counts = np.maximum(counts, 0.5)
    counts[BEGIN_ID] = 0.0
    return alias_table(counts)
