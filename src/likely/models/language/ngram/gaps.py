"""Gaps in sentences: p(unobserved tokens | the others) by forward-backward over the candidates of every gap.

A sentence is a row of candidate sets, one token where it is observed. With a model that looks N - 1 tokens back the
state at a token is the choice in the last N - 1 sets, and a factor p(w | h) is a tensor over the last N. All tokens are
candidates where the tensors stay small, and then all is exact; else the most promising ones, and the evidence, which
misses the others' share, is a lower bound. Cost: the product of the sizes of any N neighbouring sets, per token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from likely.datasets.text.encoded import Encoded
from likely.datasets.text.vocabulary import BEGIN_ID, END_ID, Vocabulary
from likely.models.language.ngram.tables import Tables, next_probabilities, score_rows

# Of a tensor, 8 MB: a gap by itself may be any of a million words, of two neighbours each one of a thousand.
MOST_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class Lattice:
    """One sentence after the forward and the backward pass.

    `sets` : candidates of `<s>` and of every token. `log_factors`, `log_future` : by token, over the sets of its window
    and of the states after it. `log_marginals` : by token, log p of each candidate given what is observed.
    """

    sets: list[np.ndarray]
    log_evidence: float
    is_exact: bool
    log_marginals: list[np.ndarray]
    log_factors: list[np.ndarray]
    log_future: list[np.ndarray]

    def sample(self, random: np.random.Generator, n: int) -> np.ndarray:
        """(n, length) completed sentences, `</s>` included: forwards, each token by its factor and what follows."""
        chosen = np.zeros((n, 1), dtype=np.int64)  # Places in the sets; that of <s> is the first.
        for factor, future in zip(self.log_factors, self.log_future, strict=True):
            log_p = (factor + future)[tuple(chosen[:, 1 - factor.ndim :].T)] if factor.ndim > 1 else factor + future
            log_p = np.broadcast_to(log_p, (n, factor.shape[-1]))
            cumulated = np.cumsum(np.exp(log_p - log_p.max(axis=1, keepdims=True)), axis=1)
            drawn = (random.random((n, 1)) * cumulated[:, -1:] >= cumulated).sum(axis=1)
            chosen = np.column_stack([chosen, drawn])
        return np.column_stack([s[place] for s, place in zip(self.sets[1:], chosen.T[1:], strict=True)])


def lattice(tables: Tables, ids: np.ndarray, largest: int = MOST_CELLS) -> Lattice:
    """Forward and backward over a sentence, which ends with `</s>` and has -1 where a token is not observed."""
    sets, is_exact = _candidates(tables, ids, largest)
    back = tables.order - 1  # A state is a choice in so many sets, fewer at the beginning of the sentence.
    # Forwards: log p of what is observed so far and of each state. A set that is out of reach is summed out.
    factors, past = [], [np.zeros((1,) * min(back, 1))]
    for t in range(1, len(sets)):
        factors.append(_factor(tables, sets[max(0, t - back) : t + 1]))
        joint = past[-1][..., None] + factors[-1]
        past.append(logsumexp(joint, axis=0) if joint.ndim > back else joint)
    # Backwards: log p of what is still to come, given each state; then with an axis for the set that a factor sums out.
    future = [np.zeros(past[-1].shape)]
    for factor, state in zip(factors[:0:-1], past[-2::-1], strict=False):
        after = future[-1] if factor.ndim <= back else future[-1][None]
        future.append(logsumexp(factor + after, axis=-1).reshape(state.shape))
    future = [f if g.ndim <= back else f[None] for f, g in zip(future[::-1], factors, strict=True)]
    total = float(logsumexp(past[-1]))
    marginals = []
    for state, factor, after in zip(past, factors, future, strict=False):
        joint = (state[..., None] + factor + after).reshape(-1, factor.shape[-1])
        marginals.append(logsumexp(joint, axis=0) - (total if np.isfinite(total) else 0.0))
    return Lattice(sets, total, is_exact, marginals, factors, future)


def _factor(tables: Tables, sets: list[np.ndarray]) -> np.ndarray:
    """Log p of the last set's tokens after every choice in the others."""
    rows = np.stack([axis.ravel() for axis in np.meshgrid(*sets, indexing="ij")], axis=1)
    return score_rows(tables, rows).reshape([len(s) for s in sets])


def _candidates(tables: Tables, ids: np.ndarray, largest: int) -> tuple[list[np.ndarray], bool]:
    """The sets of a sentence, `<s>` first, and whether they hold every token that a gap may be."""
    padded = np.concatenate([[BEGIN_ID], ids])
    is_gap = padded < 0
    window = np.ones(tables.order, dtype=np.int64)
    together = int(np.convolve(is_gap.astype(np.int64), window).max())  # A factor spans so many gaps at most.
    words = np.delete(np.arange(tables.n_words), [BEGIN_ID, END_ID])  # The length is known, so a gap is no edge.
    size = len(words) if len(words) ** together <= largest else int(largest ** (1 / together) + 1e-9)
    sets = [
        _best(tables, padded, t, words, size) if is_gap[t] else padded[t : t + 1].astype(np.int64)
        for t in range(len(padded))
    ]
    return sets, size == len(words)


def _best(tables: Tables, padded: np.ndarray, t: int, words: np.ndarray, size: int) -> np.ndarray:
    """The candidates that the observed neighbours on both sides like best."""
    if size == len(words):
        return words
    before = np.flatnonzero(padded[:t] < 0)
    known = padded[before[-1] + 1 if len(before) else 0 : t]
    with np.errstate(divide="ignore"):
        liking = np.log(next_probabilities(tables, known))[words]
    if padded[t + 1] >= 0:  # There is a next token, since the last one is </s>.
        liking = liking + score_rows(tables, np.column_stack([words, np.full(len(words), padded[t + 1])]))
    return np.sort(words[np.argsort(-liking, kind="stable")[:size]])


class GapConditional:
    """p(unobserved tokens | observed tokens) of each sentence; made by `condition`.

    Attributes
    ----------
    log_evidence : (n_sentences,) log p of what is observed; NaN of sentences without gaps.
    is_exact : (n_sentences,) whether every token was a candidate for every gap. method : how, for people.
    """

    def __init__(self, tables: Tables, encoded: Encoded, seed: int, largest: int = MOST_CELLS):
        self.encoded, self.seed = encoded, seed
        self.lattices: dict[int, Lattice] = {}
        holed = np.unique(np.searchsorted(encoded.offsets, encoded.gaps, side="right") - 1)
        self.lattices = {int(i): lattice(tables, encoded[int(i)], largest) for i in holed}
        self.log_evidence = np.full(len(encoded), np.nan)
        self.is_exact = np.ones(len(encoded), dtype=bool)
        for i, one in self.lattices.items():
            self.log_evidence[i], self.is_exact[i] = one.log_evidence, one.is_exact
        n_pruned = int((~self.is_exact).sum())
        self.method = "forward-backward over all tokens"
        if n_pruned:
            self.method = f"forward-backward, in {n_pruned} sentences over the likeliest candidates only"

    @property
    def vocabulary(self) -> Vocabulary:
        """What the ids mean."""
        return self.encoded.vocabulary

    def probabilities(self, sentence: int, place: int) -> np.ndarray:
        """(n_words,) p of every token at a place of a sentence given all that is observed of it."""
        ids = self.encoded[sentence]
        if not 0 <= place < len(ids) - 1:
            raise ValueError(f"sentence {sentence} has tokens 0 to {len(ids) - 2}, got {place}.")
        out = np.zeros(len(self.vocabulary))
        if ids[place] >= 0:
            out[ids[place]] = 1.0
        else:
            one = self._possible(sentence)
            out[one.sets[place + 1]] = np.exp(one.log_marginals[place])
        return out

    def typical(self) -> list[list[str]]:
        """The sentences as lists of tokens, each gap filled with its most probable token."""
        return self._spelled({i: self._modes(i) for i in self.lattices})

    def sample(self, n: int = 1, random_state: int | None = None) -> list[list[list[str]]]:
        """N completed copies of the sentences, each a draw of all gaps together."""
        seed = self.seed if random_state is None else random_state
        draws = {i: self._possible(i).sample(np.random.default_rng([seed, i]), n) for i in self.lattices}
        return [self._spelled({i: ids[copy] for i, ids in draws.items()}) for copy in range(n)]

    def _modes(self, i: int) -> np.ndarray:
        one = self._possible(i)
        return np.array([s[np.argmax(m)] for s, m in zip(one.sets[1:], one.log_marginals, strict=True)])

    def _possible(self, i: int) -> Lattice:
        one = self.lattices[i]
        if not np.isfinite(one.log_evidence):
            raise ValueError(
                f"what is observed of sentence {i} has probability 0, so there is nothing to condition on: use a "
                "smoothing that leaves something for what was never seen."
            )
        return one

    def _spelled(self, filled: dict[int, Any]) -> list[list[str]]:
        return [self.vocabulary.words(filled.get(i, ids)[:-1]) for i, ids in enumerate(self.encoded)]
