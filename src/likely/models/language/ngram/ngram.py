"""n-grams: p(w_1 ... w_T) = prod_t p(w_t | w_{t-N+1} ... w_{t-1}), each factor from counts that are smoothed.

Chen and Goodman (1999), An empirical study of smoothing techniques for language modeling. Every sentence is read with
one `<s>` before it and ends with `</s>`; the first words have a shorter history, as in KenLM and SRILM. Cost: one sort
of the text's positions for each order to fit, one search for each order to score a token.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from likely.contract.sequence_model import FitRun, SequenceModel
from likely.contract.settings import Positive, one_of
from likely.datasets import Encoded
from likely.datasets.text.vocabulary import BEGIN_ID, END_ID

SMOOTHINGS = {
    "maximum_likelihood": "maximum-likelihood",
    "add_k": "add-k",
    "witten_bell": "Witten-Bell",
    "katz": "Katz",
    "absolute_discounting": "absolute-discounting",
    "kneser_ney": "Kneser-Ney",
    "modified_kneser_ney": "modified Kneser-Ney",
    "stupid_backoff": "stupid back-off",
}
_HAVE_BOTH_FORMS = ("witten_bell", "absolute_discounting", "kneser_ney", "modified_kneser_ney")
_UNTOLD = "arpa"  # An ARPA file does not tell by which smoothing it was made.


class NGram(SequenceModel):
    """n-grams with smoothing and back-off; exact evidence.

    Parameters
    ----------
    order : N; a token depends on the N - 1 before it.
    smoothing : "modified_kneser_ney" (the best of them nearly always), "kneser_ney", "absolute_discounting",
        "witten_bell", "katz" (always back-off), "add_k", "maximum_likelihood" (whatever is new has probability 0), or
        "stupid_backoff", whose scores are no probabilities, so that it has no evidence.
    interpolated : mix a context's words with those of shorter contexts; False backs off to these for words that were
        never seen after it. For the first four smoothings.
    k : what "add_k" adds to every count.
    min_count : tokens that occur less often are `<unk>`. max_vocabulary : the most frequent ones that are kept.
    memory_budget : bytes for counting; what needs more lies in files without a name, in TMPDIR.
    random_state : seed of samples.

    Attributes
    ----------
    params_ : `Tables`: the n-grams, their log-probabilities and back-off weights.
    discounts_ : (order, 7) what was taken off counts 0, 1 ... 6 and more. Where a text is too small to tell, those of
        modified Kneser-Ney are KenLM's, 1/2, 1 and 3/2.

    Examples
    --------
    >>> text = ["the dog ran away", "the cat ran away", "the dog sleeps", "a dog ran"]
    >>> model = NGram(order=3, random_state=0).fit(text)
    >>> print(model.perplexity(["the cat sleeps"]))
    7.04, counting every token and </s>, not <s> (4 tokens, 0.0% <unk>)
    >>> model.impute([["a", None, "ran", "away"]])
    [['a', 'dog', 'ran', 'away']]
    """

    order: Annotated[int, Interval(Integral, 1, 20, closed="both")] = 3
    smoothing: Annotated[str, one_of({*SMOOTHINGS, _UNTOLD})] = "modified_kneser_ney"
    _: KW_ONLY
    interpolated: bool = True
    k: Positive = 1.0

    @property
    def _no_evidence(self) -> str:  # type: ignore[override]
        if self.smoothing != "stupid_backoff":
            return ""
        return (
            "stupid back-off gives scores that do not sum to one: rank texts by token_scores, or fit "
            "smoothing='modified_kneser_ney'."
        )

    @classmethod
    def load_arpa(cls, path: Any) -> NGram:
        """A model from an ARPA file, plain or .gz, as KenLM, SRILM and `save_arpa` write them.

        Raises
        ------
        DataError : the file is not what it says: which line, and what is wrong with it.
        """
        from likely.models.language.ngram.arpa import read_arpa

        tables, vocabulary = read_arpa(path)
        model = cls(tables.order, _UNTOLD, random_state=0)
        model.vocabulary_, model.params_ = vocabulary, tables
        model.tokenizer_, model.seed_, model.history_ = "whitespace", 0, {}
        return model

    def save_arpa(self, path: Any) -> None:
        """Write an ARPA file, which KenLM, SRILM and others read; with nine digits."""
        check_is_fitted(self)
        if self._no_evidence:
            raise ValueError(f"an ARPA file holds probabilities, and {self._no_evidence}")
        from likely.models.language.ngram.arpa import write_arpa

        write_arpa(path, self.params_, self.vocabulary_)

    # ------------------------------------------------------------------ hooks
    def _fit(self, encoded: Encoded, seed: int, run: FitRun) -> Any:
        from likely.models.language.ngram.counts import count_ngrams
        from likely.models.language.ngram.smoothing import estimate

        if self.smoothing == _UNTOLD:
            raise ValueError("smoothing 'arpa' is that of a model read from a file: name one to fit.")
        counts = count_ngrams(encoded, self.order, self.memory_budget)
        tables, self.discounts_ = estimate(
            counts, self.smoothing, interpolated=self.interpolated, k=self.k, memory_budget=self.memory_budget
        )
        return tables

    def _token_scores(self, encoded: Encoded) -> np.ndarray:
        from likely.models.language.ngram.tables import score_tokens

        return score_tokens(self.params_, encoded)

    def _next_log_probs(self, ids: np.ndarray) -> np.ndarray:
        from likely.models.language.ngram.tables import next_probabilities

        past = [BEGIN_ID, *ids.tolist()]
        chances = np.stack([next_probabilities(self.params_, past[: place + 1]) for place in range(len(ids))])
        chances[:, BEGIN_ID] = 0.0  # which begins a sentence, and is never next
        with np.errstate(divide="ignore"):
            return np.log(chances)

    def _sample(self, seed: int, n: int, prompt: list[int], max_length: int) -> list[list[int]]:
        from likely.models.language.ngram.tables import next_probabilities

        random = np.random.default_rng(seed)
        drawn = []
        for _ in range(n):
            ids = [BEGIN_ID, *prompt]
            for _ in range(max_length):
                cumulated = np.cumsum(next_probabilities(self.params_, ids[-self.order :]))
                token = int(np.searchsorted(cumulated, random.random() * cumulated[-1], side="right"))
                if token == END_ID:
                    break
                ids.append(token)
            drawn.append(ids[1 + len(prompt) :])
        return drawn

    def _condition(self, encoded: Encoded, seed: int) -> Any:
        from likely.models.language.ngram.gaps import GapConditional

        self._check_likelihood()
        return GapConditional(self.params_, encoded, seed)

    def _describe(self) -> str:
        kind = SMOOTHINGS.get(self.smoothing, "ARPA")
        form = " back-off" if self.smoothing in _HAVE_BOTH_FORMS and not self.interpolated else ""
        return f"{kind}{form} {self.order}-gram"

    def _arrays(self) -> dict[str, np.ndarray]:
        tables = self.params_
        return {
            "words": tables.words,
            "start": tables.start,
            "log_prob": tables.log_prob,
            "log_backoff": tables.log_backoff,
            "bounds": np.array(tables.bounds),
            "unseen": np.array(tables.unseen),
        }

    def _from_arrays(self, arrays: dict[str, np.ndarray]) -> Any:
        from likely.models.language.ngram.tables import Tables

        tables = Tables(
            arrays["words"],
            arrays["start"],
            arrays["log_prob"],
            arrays["log_backoff"],
            tuple(arrays["bounds"].tolist()),
            float(arrays["unseen"]),
        )
        tables.check()
        if tables.order != self.order or tables.n_words != len(self.vocabulary_):
            raise ValueError("the trie of n-grams is of another order or vocabulary than the model.")
        return tables
