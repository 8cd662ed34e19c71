"""Embeddings by the full softmax: log p(w | c) = u_w·v_c + b_w − log Σ_w' exp(u_w'·v_c + b_w').

Cost: 6 V d flops for a pair, linear in the vocabulary, which is why noise contrast and negative sampling exist. The
vocabulary is cut into parts of one size; a thread takes a part, and what the parts give is added in their order, so
that the number of threads changes no bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.models.language.embeddings.noise_contrast import Threads
from likely.models.language.embeddings.windows import Block
from likely.models.language.embeddings.word_vectors import Weights

# The parts of the vocabulary have one size, so that the number of threads changes no bit. It is enough for a matrix
# product at full speed, and gives several threads something to do from some ten thousand words on.
_WORDS_A_PART = 4096
_WINDOWS_A_STEP = 32  # Their gradients are taken at one point, as those of `noise_contrast`'s batches.


class Pairs(NamedTuple):
    """Contexts and the words among them: `words` (n,) stands with the contexts ids[starts[i]:starts[i + 1]]."""

    words: np.ndarray
    ids: np.ndarray
    starts: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """(n,) how many words a context has."""
        return np.diff(self.starts, append=len(self.ids))


def pairs_of(block: Block, first: int, last: int, is_window: bool) -> Pairs:
    """The words from first to last, each with its whole window as context, or once with every word of that."""
    places = first + np.flatnonzero(block.words[first:last] >= 0)
    reach = int(block.reach.max(initial=1))
    steps = np.array([step for step in range(-reach, reach + 1) if step])
    others = places[:, None] + steps
    inside = (others >= 0) & (others < len(block.words)) & (np.abs(steps) <= block.reach[places][:, None])
    # Sentences are numbered by how many ended before: a word of another one is no context, nor is the end of this one.
    near = slice(max(0, first - reach), last + reach)
    sentence = np.cumsum(block.words[near] < 0)
    others = np.where(inside, others, places[:, None])
    inside &= (sentence[others - near.start] == sentence[places - near.start][:, None]) & (block.words[others] >= 0)
    rows, columns = np.nonzero(inside)
    ids = block.words[others[rows, columns]]
    if not is_window:
        return Pairs(block.words[places[rows]], ids, np.arange(len(ids)))
    sizes = np.bincount(rows, minlength=len(places))
    filled = np.flatnonzero(sizes)
    return Pairs(block.words[places[filled]], ids, np.concatenate([[0], np.cumsum(sizes[filled])[:-1]]).astype(int))


def train_softmax(
    weights: Weights, block: Block, rates: tuple[float, float], is_window: bool, threads: Threads
) -> np.ndarray:
    """Learn from a block's pairs, a few windows at a time; the loss and its number of pairs."""
    totals = np.zeros(2)
    for first in range(0, len(block.words), _WINDOWS_A_STEP):
        pairs = pairs_of(block, first, min(first + _WINDOWS_A_STEP, len(block.words)), is_window)
        if len(pairs.words):
            rate = rates[0] + (rates[1] - rates[0]) * first / len(block.words)
            totals += softmax_step(weights, pairs, np.float32(rate), threads), len(pairs.words)
    return totals


def softmax_step(weights: Weights, pairs: Pairs, rate: np.floating, threads: Threads) -> float:
    """One step up the gradient of Σ log p(w | c); minus that sum, as it was before."""
    vectors, outputs, bias = weights
    share = 1 / pairs.sizes[:, None].astype(vectors.dtype)
    inputs = context_vectors(vectors, pairs)
    scores = np.empty((len(inputs), len(outputs)), vectors.dtype)
    rows = np.arange(len(inputs))

    def score(start: int) -> np.ndarray:
        part = slice(start, start + _WORDS_A_PART)
        scores[:, part] = inputs @ outputs[part].T + bias[part]
        return log_sum_exp(scores[:, part])

    def learn(start: int) -> np.ndarray:
        part = slice(start, start + _WORDS_A_PART)
        errors = -rate * np.exp(scores[:, part] - log_z[:, None])
        own = (pairs.words >= start) & (pairs.words < start + _WORDS_A_PART)
        errors[rows[own], pairs.words[own] - start] += rate
        back = errors @ outputs[part]
        outputs[part] += errors.T @ inputs
        bias[part] += errors.sum(axis=0)
        return back

    parts = range(0, len(outputs), _WORDS_A_PART)
    log_z = log_sum_exp(np.stack(threads(score, parts), axis=1))
    loss = float((log_z - scores[rows, pairs.words]).sum())
    back = np.sum(threads(learn, parts), axis=0) * share
    np.add.at(vectors, pairs.ids, np.repeat(back, pairs.sizes, axis=0))
    return loss


def context_vectors(vectors: np.ndarray, pairs: Pairs) -> np.ndarray:
    """(n, d) the mean vector of each context's words."""
    return np.add.reduceat(vectors[pairs.ids], pairs.starts) / pairs.sizes[:, None].astype(vectors.dtype)


def log_normalizers(weights: Weights, inputs: np.ndarray) -> np.ndarray:
    """(n,) log Σ_w exp(u_w·v + b_w) for the vectors v of contexts (n, d)."""
    step = 256  # Scores of all words are held for so many contexts at a time.
    parts = [inputs[start : start + step] @ weights.outputs.T + weights.bias for start in range(0, len(inputs), step)]
    return np.concatenate([log_sum_exp(part) for part in parts])


def spread_of_normalizers(weights: Weights, block: Block, is_window: bool, n: int = 1000) -> dict[str, float]:
    """Mean and deviation of log Z over some n contexts of a text."""
    firsts = np.unique(np.linspace(0, len(block.words) - 1, n).astype(int)).tolist()
    some = (pairs_of(block, first, first + 1, is_window) for first in firsts)
    inputs = [context_vectors(weights.vectors, pairs)[:1] for pairs in some if len(pairs.words)]
    values = log_normalizers(weights, np.concatenate(inputs)) if inputs else np.full(1, np.nan)
    return {"mean": float(values.mean()), "std": float(values.std()), "n_contexts": len(inputs)}


def log_sum_exp(scores: np.ndarray) -> np.ndarray:
    """Log Σ exp of each row."""
    top = scores.max(axis=1)
    return top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
