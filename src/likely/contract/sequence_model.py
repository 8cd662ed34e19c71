"""The contract of models of text: fit, evidence, perplexity, sample, condition, impute, save; a row is a sentence.

As `Model` is for tables: the public methods are final, they read text and turn it into numbers by the vocabulary, and a
model writes hooks, which work on `Encoded` sentences. An unobserved token is None, and -1 among the numbers.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.contract.estimator import STREAMS, Arrays, Estimator, FitRun, check_count, offered, under
from likely.contract.evidence import Evidence
from likely.contract.fingerprint import Fingerprint
from likely.contract.scikit_learn import DensityMixin
from likely.contract.settings import Count, seed_of
from likely.datasets import CONVENTION, Corpus, DataError, Encoded, Vocabulary, as_corpus
from likely.datasets.text.vocabulary import UNKNOWN_ID
from likely.storage.modules import describe_estimator, restore_estimator
from likely.training.progress import showing

_OWN_TOKENIZER = "own"  # What `tokenizer_` calls a function, which a file could not hold.


@dataclass(frozen=True)
class Perplexity:
    """Exp of the negative log-likelihood per counted token, with what was counted.

    Examples
    --------
    >>> print(Perplexity(220.138, 245_569, 0.062, CONVENTION))
    220.14, counting every token and </s>, not <s> (245,569 tokens, 6.2% <unk>)
    """

    value: float
    n_tokens: int
    share_unknown: float
    convention: str

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:,.2f}, {self.convention} ({self.n_tokens:,} tokens, {self.share_unknown:.1%} <unk>)"


class SequenceHooks:
    """What a model of text may write besides its abstract methods, each where it means something."""

    _sample: Callable[..., Any]  # (seed, n, prompt, max_length) -> n lists of ids, without `</s>` and prompt
    # (encoded, seed) -> an object with `log_evidence` and `is_exact` of each sentence, `probabilities`, `sample` and
    # `typical` (see `likely.models.language.ngram.gaps`).
    _condition: Callable[..., Any]
    # (ids of a sentence) -> (n_tokens, n_words) log p of every token at each place, given those before it.
    _next_log_probs: Callable[[np.ndarray], np.ndarray]


class SequenceModel(DensityMixin, SequenceHooks, Estimator):
    """Base of the models of text.

    Fitted attributes
    -----------------
    params_ : what was learned. vocabulary_ : the tokens. tokenizer_ : "whitespace", "character" or "own".
    history_ : learning curves, a dictionary of lists. seed_ : the seed that `random_state` gave.
    """

    _: KW_ONLY
    min_count: Count = 1
    max_vocabulary: Count | None = None
    memory_budget: Count = 2 << 30

    # ------------------------------------------------------------------ hooks
    @abc.abstractmethod
    def _fit(self, encoded: Encoded, seed: int, run: FitRun) -> Any:
        """Learned parameters from sentences."""

    @abc.abstractmethod
    def _token_scores(self, encoded: Encoded) -> np.ndarray:
        """(n_tokens,) log p of every token given those before it in its sentence."""

    @abc.abstractmethod
    def _describe(self) -> str:
        """What the model is, for people: "modified Kneser-Ney 5-gram"."""

    @abc.abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """What was learned, for a file."""

    @abc.abstractmethod
    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> Any:
        """The parameters that `_arrays` gave."""

    # ------------------------------------------------------------- the contract
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        valid: Any = None,
        vocabulary: Vocabulary | None = None,
        checkpoint: Any = None,
        resume: Any = None,
        progress: bool | None = None,
    ) -> Any:
        """Learn the distribution of sentences.

        Parameters
        ----------
        X : a `likely.Corpus`, the path of a text file (a `pathlib.Path`), or a list of sentences: texts, or lists of
            tokens, where None is unobserved.
        y : ignored.
        valid : text for early stopping, for models that use it.
        vocabulary : which tokens there are; without it those that occur `min_count` times in X.
        checkpoint, resume : for models trained by gradient, as in `Model.fit`.
        progress : as in `Model.fit`.
        """
        self._validate_params()
        self._check_resumable(checkpoint, resume)
        corpus = as_corpus(X)
        if vocabulary is None:
            vocabulary = corpus.vocabulary(min_count=self.min_count, max_size=self.max_vocabulary)
        encoded = corpus.encode(vocabulary, memory_budget=self.memory_budget)
        if encoded.only_unknown:
            raise DataError("the vocabulary leaves only <unk>: none of its tokens occurs in the text.")
        # What was learned before belongs to another vocabulary: a fit that fails now leaves an unfitted model.
        self.__dict__.pop("params_", None)
        self.vocabulary_, self.tokenizer_ = vocabulary, _name(corpus)
        self.seed_ = seed_of(self.random_state)
        self.history_: dict[str, list[float]] = {}
        others = None if valid is None else self._numbered(valid)
        with showing(progress):
            self.params_ = self._fit(encoded, self._stream("fit"), FitRun(others, checkpoint, resume))
        return self

    def evidence(self, X: Any) -> Evidence:
        """Log p of each sentence in nats, `</s>` included; of the observed tokens where a sentence has gaps.

        `evidence.perplexity` and `evidence.method` follow the convention: every token and `</s>` count, not `<s>`.
        """
        encoded = self._encoded(X)
        about = {
            "method": f"{self._describe()}, {CONVENTION}",
            "dimensions": encoded.n_counted,
            "fingerprint": _fingerprint(encoded),
        }
        if self._no_evidence:
            return Evidence.unavailable(len(encoded), self._no_evidence, **about | {"method": "none"})
        values, is_exact = self._log_evidence(encoded)
        if is_exact.all():
            return Evidence.exact(values, **about)
        return Evidence.estimate(values, values, np.where(is_exact, values, np.inf), **about)

    def describe(self) -> str:
        """What the model is, for people: "modified Kneser-Ney 5-gram"."""
        return self._describe()

    def encode(self, X: Any) -> Encoded:
        """Text as the numbers of its tokens, by the vocabulary that `fit` made."""
        return self._encoded(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """(n_sentences,) the evidence's values: log p in nats."""
        self._check_likelihood()
        return self._log_evidence(self._encoded(X))[0]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`."""
        self._check_likelihood()
        return self.evidence(X).mean

    def token_scores(self, X: Any) -> list[np.ndarray]:
        """Of each sentence, log p of every token given those before it, that of `</s>` last."""
        encoded = self._encoded(X)
        self._check_whole(encoded)
        return np.split(self._token_scores(encoded), encoded.offsets[1:-1])

    def expected(self, X: Any, n: int = 5) -> list[list[list[tuple[str, float]]]]:
        """Of each sentence, what was expected at every token, that of `</s>` last: the n likeliest, with their p.

        Parameters
        ----------
        X : text, as `fit` takes it.
        n : tokens at each place, the likeliest first.

        Examples
        --------
        >>> import likely
        >>> model = likely.NGram(2, random_state=0).fit(["the dog ran", "the dog sleeps", "a cat ran"])
        >>> [place[0][0] for place in model.expected(["the dog"], n=1)[0]]
        ['the', 'dog', 'ran']
        """
        self._check_likelihood()
        check_count(n)
        if not hasattr(self, "_next_log_probs"):
            raise ValueError(f"{type(self).__name__} does not say what it expects: ask NGram or RecurrentLM.")
        encoded = self._encoded(X)
        self._check_whole(encoded)
        return [self._likeliest(self._next_log_probs(encoded[place]), n) for place in range(len(encoded))]

    def perplexity(self, X: Any, *, end: bool = True, unknown: bool = True) -> Perplexity:
        """Perplexity of text, with its convention.

        Parameters
        ----------
        end : count `</s>`. unknown : count `<unk>`, whose probability is that of all unknown words together.
        """
        self._check_likelihood()
        encoded = self._encoded(X)
        self._check_whole(encoded)
        counted = np.ones(len(encoded.tokens), dtype=bool)
        counted[encoded.offsets[1:] - 1] = end
        if not unknown:
            counted[encoded.where(UNKNOWN_ID)] = False
        n = int(counted.sum())
        if n == 0:
            raise ValueError("no token is counted: give text with known words, or count </s>.")
        mean = float(self._token_scores(encoded)[counted].mean())
        value = math.exp(-mean) if mean > -700 else math.inf
        share = 0.0 if not unknown else len(encoded.where(UNKNOWN_ID)) / n
        return Perplexity(value, n, share, convention(end, unknown))

    @offered("_sample")
    def sample(
        self, n: int = 1, random_state: int | None = None, *, prompt: Any = None, max_length: int = 100
    ) -> list[Any]:
        """N sentences; texts, or lists of tokens if the model's tokenizer is your own.

        Parameters
        ----------
        prompt : how every sentence begins: a text or a list of tokens.
        max_length : tokens after which a sentence that has not ended is cut off.
        """
        start = self._prompted(n, prompt)
        drawn = self._sample(self._stream("sample", random_state), n, start, max_length)
        return [self._spelled([*start, *ids]) for ids in drawn]

    @offered("_condition")
    def condition(self, X: Any) -> Any:
        """The distribution of the unobserved tokens (None) of each sentence given the others."""
        return self._gaps(self._encoded(X))

    @offered("_condition")
    def impute(self, X: Any) -> list[list[str]]:
        """The sentences as lists of tokens, each gap filled with its most probable token."""
        return self.condition(X).typical()

    def _to_file(self) -> tuple[Arrays, dict[str, Any]]:
        arrays = {f"params.{name}": array for name, array in self._arrays().items()}
        arrays |= {f"vocabulary.{name}": array for name, array in self.vocabulary_.to_arrays().items()}
        return arrays, describe_estimator(self, apart=("params_", "vocabulary_"))

    @classmethod
    def _from_file(cls, arrays: Arrays, meta: dict[str, Any]) -> SequenceModel:
        model = restore_estimator(cls, meta)
        model.vocabulary_ = Vocabulary.from_arrays(under("vocabulary.", arrays))
        model.params_ = model._from_arrays(under("params.", arrays))
        return model

    # ---------------------------------------------------------------- plumbing
    def __sklearn_is_fitted__(self) -> bool:
        # The vocabulary is set before a model learns from it: with it alone it is not fitted.
        return "params_" in vars(self)

    @property
    def n_parameters_(self) -> int:
        """Number of learned numbers."""
        return sum(int(a.size) for a in self._arrays().values() if np.issubdtype(a.dtype, np.floating))

    def _stream(self, stream: str, random_state: int | None = None) -> int:
        """A seed for one use of randomness: each has its own, so that samples never change an evidence."""
        seed = self.seed_ if random_state is None else seed_of(random_state)
        return int(np.random.SeedSequence([seed, STREAMS.index(stream)]).generate_state(1)[0])

    def _encoded(self, X: Any) -> Encoded:
        """Text that a fitted model is asked about, as numbers."""
        check_is_fitted(self)
        return self._numbered(X)

    def _numbered(self, X: Any) -> Encoded:
        """Text as numbers of the vocabulary, cut by the tokenizer that `fit` saw."""
        if not isinstance(X, Corpus) and self.tokenizer_ == _OWN_TOKENIZER and _has_text(X):
            raise ValueError(
                f"{type(self).__name__} was fitted with a tokenizer of your own, which it does not keep: give a Corpus "
                "with that tokenizer, or lists of tokens."
            )
        corpus = as_corpus(X, "whitespace" if self.tokenizer_ == _OWN_TOKENIZER else self.tokenizer_)
        if _name(corpus) != self.tokenizer_:
            raise ValueError(
                f"{type(self).__name__} was fitted on {self.tokenizer_} tokens, and this corpus has {_name(corpus)} "
                "ones: give it the same tokenizer."
            )
        return corpus.encode(self.vocabulary_, memory_budget=self.memory_budget)

    def _prompted(self, n: int, prompt: Any) -> list[int]:
        """The ids of a prompt, after a look at what is asked for."""
        check_is_fitted(self)
        check_count(n)
        start = [] if prompt is None else self._encoded([prompt]).tokens[:-1].tolist()
        if any(token < 0 for token in start):
            raise ValueError("a prompt has no gaps: use condition or impute to fill them.")
        return start

    def _log_evidence(self, encoded: Encoded) -> tuple[np.ndarray, np.ndarray]:
        """Log p of each sentence, and whether it is exact; those with gaps may have been cut short."""
        part = self._gaps(encoded) if len(encoded.gaps) else None
        values = np.add.reduceat(self._token_scores(encoded), encoded.offsets[:-1])
        if part is None:
            return values, np.ones(len(values), bool)
        return np.where(np.isnan(values), part.log_evidence, values), part.is_exact

    def _gaps(self, encoded: Encoded) -> Any:
        if not hasattr(self, "_condition"):
            name = type(self).__name__
            raise ValueError(f"the text has gaps, and {name} has no condition to fill them: give whole sentences.")
        return self._condition(encoded, self._stream("condition"))

    def _likeliest(self, log_probs: np.ndarray, n: int) -> list[list[tuple[str, float]]]:
        """Tokens with their probabilities at each place (n_tokens, n_words), the likeliest first."""
        best = np.argsort(-log_probs, axis=1, kind="stable")[:, :n]
        chances = np.exp(np.take_along_axis(log_probs, best, axis=1))
        words = [self.vocabulary_.words(ids) for ids in best.tolist()]
        return [list(zip(own, p, strict=True)) for own, p in zip(words, chances.tolist(), strict=True)]

    def _check_likelihood(self) -> None:
        check_is_fitted(self)
        if self._no_evidence:
            raise ValueError(f"{type(self).__name__} has no likelihood: {self._no_evidence}")

    def _check_whole(self, encoded: Encoded) -> None:
        if len(encoded.gaps):
            raise ValueError("the text has gaps, and this is asked of whole sentences: fill them by impute.")

    def _spelled(self, ids: Sequence[int]) -> Any:
        """Tokens as the text that the tokenizer would cut into them; a list of them where it is your own."""
        tokens = self.vocabulary_.words(ids)
        if self.tokenizer_ == _OWN_TOKENIZER:
            return tokens
        return (" " if self.tokenizer_ == "whitespace" else "").join(tokens)


def convention(end: bool = True, unknown: bool = True) -> str:
    """What a perplexity counts, in words."""
    text = CONVENTION if end else "counting every token, not </s> and <s>"
    return text if unknown else f"{text}, nor <unk>"


def _fingerprint(encoded: Encoded) -> Fingerprint:
    """The name of sentences in a vocabulary: where a token is `<unk>` is part of the question."""
    vocabulary = sha256("\n".join(encoded.vocabulary.tokens).encode()).hexdigest()
    return Fingerprint.of_sequences(encoded.tokens, encoded.offsets, f"sentences in vocabulary {vocabulary}")


def _name(corpus: Corpus) -> str:
    return corpus.tokenizer if isinstance(corpus.tokenizer, str) else _OWN_TOKENIZER


def _has_text(X: Any) -> bool:
    return hasattr(X, "__fspath__") or (isinstance(X, list | tuple) and any(isinstance(x, str) for x in X))


__all__ = ["FitRun", "Perplexity", "SequenceModel", "convention"]
