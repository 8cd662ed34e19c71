"""Embeddings of words: a vector v_c for each word c, from which words w nearby are told, by s(w, c) = u_w·v_c.

Mikolov et al. (2013), Distributed representations of words and phrases and their compositionality. Three losses: the
full softmax of s, linear in the vocabulary; noise contrast, which learns the same distribution from k noise words;
negative sampling, which learns PMI − log k (Levy and Goldberg, 2014). Costs are told in `noise_contrast` and `softmax`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY
from functools import partial
from numbers import Integral
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from likely.contract.sequence_model import FitRun, SequenceModel
from likely.contract.settings import Count, NonNegative, Positive, one_of
from likely.datasets import Encoded, Vocabulary
from likely.models.language.embeddings.windows import (
    N_MARKS,
    Block,
    blocks,
    count_words,
    has_neighbours,
    keep_probability,
    noise_table,
)
from likely.models.language.embeddings.word_vectors import Agreement, Weights, agreement, as_pairs, nearest, unit_rows

LOSSES = {"negative_sampling": "negative sampling", "nce": "noise contrast", "softmax": "softmax"}
# word2vec's rate; a window as a whole is one example, where it was one for each of its eight or so words.
_RATES = {"skip_gram": 0.025, "cbow": 0.2}


class SkipGram(SequenceModel):
    """Vectors of words, learned from their neighbours; it has no likelihood of sentences.

    Parameters
    ----------
    loss : "negative_sampling" as word2vec; "nce", noise contrast: log k q is taken off, and the scores become
        log-probabilities that sum to one nearly of themselves; "softmax", whose cost grows with the vocabulary.
    n_components : length of the vectors.
    architecture : "skip_gram", every word of a window by itself tells its centre; "cbow", their mean does.
    window : words to either side at most; the reach is drawn anew for each place, from 1 to `window`.
    n_negatives : k, noise words for each place. noise_power : they are drawn by counts to this power.
    subsample : words more frequent than this are thinned out; 0 keeps all.
    n_epochs : passes over the text. learning_rate : falls to 0 along a line; None is 0.025, for "cbow" 0.2.
    min_count : words that occur less often are left out. max_vocabulary : the most frequent ones that are kept.
    deterministic : the same bits whatever the number of threads; False lets threads write as they come, which is up
        to a third faster and never twice the same.
    n_threads : None takes all cores.
    memory_budget : bytes for the text; what needs more lies in a file without a name, in TMPDIR.
    random_state : seed.

    Attributes
    ----------
    params_ : `Weights`: vectors, outputs and bias, rows in the order of `words_`.
    log_z_ : for "nce", mean and deviation ("std") of log Z(c) over contexts of the text: 0 and 0 is normalised.
    history_ : "loss", for each epoch, of a pair.

    Examples
    --------
    >>> pets = ["the cat sleeps", "the dog sleeps", "the cat eats", "the dog eats"]
    >>> people = ["a girl reads", "a man reads", "a girl writes", "a man writes"]
    >>> model = SkipGram("softmax", n_components=8, min_count=1, subsample=0, n_epochs=20, random_state=0)
    >>> model.fit((pets + people) * 20).most_similar("cat", n=1)[0][0]
    'dog'
    """

    loss: Annotated[str, one_of(LOSSES)] = "negative_sampling"
    n_components: Count = 100
    _: KW_ONLY
    architecture: Annotated[str, one_of(_RATES)] = "skip_gram"
    window: Annotated[int, Interval(Integral, 1, 100, closed="both")] = 5
    n_negatives: Count = 5
    noise_power: NonNegative = 0.75
    subsample: NonNegative = 1e-3
    n_epochs: Count = 5
    learning_rate: Positive | None = None
    min_count: Count = 5
    deterministic: bool = True
    n_threads: Count | None = None

    _no_evidence = (
        "it tells words from their neighbours and gives no probability of a sentence: judge it by evaluate_pairs, or "
        "fit NGram or RecurrentLM for a likelihood."
    )
    _why_not: ClassVar[dict[str, str]] = dict.fromkeys(
        ("sample", "condition", "impute"), "it gives no probability of a sentence"
    )

    # -------------------------------------------------------------- what it is for
    @property
    def words_(self) -> tuple[str, ...]:
        """The words that have a vector, in the order of its rows."""
        return self.vocabulary_.tokens[N_MARKS:]

    def vectors(self, words: Iterable[str]) -> np.ndarray:
        """(n, n_components) the vectors of some words."""
        return self.params_.vectors[self._rows(words)]

    def most_similar(self, word: str, n: int = 10) -> list[tuple[str, float]]:
        """The n words whose vectors have the largest cosine to that of a word, best first."""
        rows = self._rows([word])
        return self._nearest(self.params_.vectors[rows[0]], n, rows)

    def analogy(self, a: str, b: str, c: str, n: int = 1) -> list[tuple[str, float]]:
        """The n words that are to c as b is to a: nearest to b − a + c, all of length 1; the three are left out."""
        rows = self._rows([a, b, c])
        first, second, third = unit_rows(self.params_.vectors[rows])
        return self._nearest(second - first + third, n, rows)

    def evaluate_pairs(self, pairs: Any) -> Agreement:
        """Spearman's correlation of cosines with people's scores of pairs of words, such as WordSim-353.

        Parameters
        ----------
        pairs : triples (word, word, score), or the path of a file that has one on each line.
        """
        check_is_fitted(self)
        index = {word: row for row, word in enumerate(self.words_)}
        return agreement(unit_rows(self.params_.vectors), index, as_pairs(pairs))

    def log_normalizers(self, contexts: Iterable[str | list[str]]) -> np.ndarray:
        """(n,) log Z(c) = log Σ_w exp(u_w·v_c + b_w) of contexts, each a word or a list of words, whose mean it is."""
        check_is_fitted(self)
        if not len(self.params_.outputs):
            raise ValueError("this model was read from a file of vectors alone, and Z needs the outputs as well.")
        from likely.models.language.embeddings.softmax import log_normalizers

        inputs = [self.vectors([c] if isinstance(c, str) else c).mean(axis=0) for c in contexts]
        return log_normalizers(self.params_, np.stack(inputs))

    def save_word2vec(self, path: Any, *, binary: bool = False) -> None:
        """Write the vectors as word2vec does, for gensim and others; `save` keeps the whole model."""
        check_is_fitted(self)
        from likely.models.language.embeddings.word2vec_format import write_vectors

        write_vectors(path, list(self.words_), self.params_.vectors, binary=binary)

    @classmethod
    def load_word2vec(cls, path: Any, *, binary: bool = False) -> SkipGram:
        """A model from vectors that word2vec, gensim or `save_word2vec` wrote; rows of `<unk>` and `</s>` are left out.

        Raises
        ------
        DataError : the file is not what it says: where, and what is wrong with it.
        """
        from likely.models.language.embeddings.word2vec_format import read_vectors

        words, vectors = read_vectors(path, binary=binary)
        model = cls(n_components=vectors.shape[1], random_state=0)
        model.vocabulary_ = Vocabulary(words)
        marks = set(model.vocabulary_.tokens[:N_MARKS])
        kept = vectors[[word not in marks for word in words]]
        model.params_ = Weights(kept, np.zeros((0, vectors.shape[1]), np.float32), np.zeros(0, np.float32))
        model.tokenizer_, model.seed_, model.history_ = "whitespace", 0, {}
        return model

    # ------------------------------------------------------------------------ hooks
    def _fit(self, encoded: Encoded, seed: int, run: FitRun) -> Weights:
        from likely.models.language.embeddings.noise_contrast import Threads, pad
        from likely.models.language.embeddings.softmax import spread_of_normalizers

        if not has_neighbours(encoded):
            raise ValueError("no sentence has two words of the vocabulary: lower min_count, or give more text.")
        counts = count_words(encoded)
        keep = keep_probability(counts, self.subsample)
        start = self._start(counts, seed)
        weights = Weights(pad(start.vectors), pad(start.outputs), start.bias)
        with Threads(self.n_threads) as threads, np.errstate(all="ignore"):  # Overflow is looked for below.
            train = self._trainer(counts, threads)
            self.history_["loss"] = []
            for epoch in range(self.n_epochs):
                totals = np.zeros(2)
                for block in blocks(encoded, keep, self.window, self.n_epochs, epoch, seed):
                    totals += train(weights, block, self._rates(block))
                self.history_["loss"].append(float(totals[0] / max(1.0, totals[1])))
                if not np.isfinite(weights.vectors).all():
                    raise ValueError(f"training diverged in epoch {epoch + 1}: lower learning_rate.")
        d = self.n_components
        learned = Weights(weights.vectors[:, :d].copy(), weights.outputs[:, :d].copy(), weights.bias)
        self.log_z_ = None
        if self.loss == "nce":
            text = next(blocks(encoded, keep, self.window, self.n_epochs, 0, seed))
            self.log_z_ = spread_of_normalizers(learned, text, self.architecture == "cbow")
        return learned

    def _start(self, counts: np.ndarray, seed: int) -> Weights:
        """As word2vec: small vectors, no outputs. Biases that are log frequencies make Z one from the start."""
        n, d = len(counts), self.n_components
        vectors = (np.random.default_rng(seed).random((n, d), np.float32) - np.float32(0.5)) / np.float32(d)
        log_share = np.log(np.maximum(counts, 0.5) / counts.sum()).astype(np.float32)
        bias = np.zeros(n, np.float32) if self.loss == "negative_sampling" else log_share
        return Weights(vectors, np.zeros((n, d), np.float32), bias)

    def _trainer(self, counts: np.ndarray, threads: Any) -> Callable[[Weights, Block, tuple[float, float]], np.ndarray]:
        """What learns from a block: a function of weights, block and learning rates."""
        from likely.models.language.embeddings.noise_contrast import Task, train_in_order, train_lock_free
        from likely.models.language.embeddings.softmax import train_softmax

        is_window = self.architecture == "cbow"
        if self.loss == "softmax":
            return partial(train_softmax, is_window=is_window, threads=threads)
        task = Task(self.n_negatives, self.loss == "nce", is_window)
        train = train_in_order if self.deterministic else train_lock_free
        return partial(train, task=task, noise=noise_table(counts, self.noise_power), threads=threads)

    def _rates(self, block: Block) -> tuple[float, float]:
        rate = _RATES[self.architecture] if self.learning_rate is None else self.learning_rate
        return rate * (1 - block.start), rate * (1 - block.end)

    def _token_scores(self, encoded: Encoded) -> np.ndarray:
        raise ValueError(f"{type(self).__name__} has no scores of tokens: {self._no_evidence}")

    def _describe(self) -> str:
        return f"{self.architecture} by {LOSSES[self.loss]}"

    def _arrays(self) -> dict[str, np.ndarray]:
        return self.params_._asdict()

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> Weights:
        weights = Weights(arrays["vectors"], arrays["outputs"], arrays["bias"])
        n, d = weights.vectors.shape
        if n != len(self.words_) or weights.outputs.shape not in ((n, d), (0, d)):
            raise ValueError(f"there are {len(self.words_)} words and vectors of shape {(n, d)}.")
        return weights

    # --------------------------------------------------------------------- plumbing
    def _rows(self, words: Iterable[str]) -> np.ndarray:
        """Rows of words, all of which must be known."""
        check_is_fitted(self)
        if isinstance(words, str):
            raise TypeError(f"words must be a list of words, got {words!r}: give [{words!r}].")
        words = list(words)
        rows = np.array(self.vocabulary_.ids(words), dtype=int) - N_MARKS
        unknown = [word for word, row in zip(words, rows, strict=True) if row < 0]
        if unknown:
            raise ValueError(f"there is no vector of {unknown[0]!r}: it is not in the vocabulary of the text.")
        return rows

    def _nearest(self, target: np.ndarray, n: int, excluded: np.ndarray) -> list[tuple[str, float]]:
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a positive integer, got {n!r}.")
        words = self.words_
        return [(words[i], c) for i, c in nearest(unit_rows(self.params_.vectors), target, int(n), excluded.tolist())]
