"""Comparing models of text: the same tokens, the same convention, ranked by evidence, shown as perplexity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.datasets import Corpus, TextDataset, Vocabulary
from likely.leaderboard.board import Leaderboard
from likely.leaderboard.report.page import section

if TYPE_CHECKING:
    from likely.contract.sequence_model import SequenceModel

_SENTENCES_SHOWN = 3  # by each model in the report


@dataclass(frozen=True, eq=False)
class TextContest:
    """Models of text by name, and the vocabulary that they share."""

    models: dict[str, SequenceModel]
    vocabulary: Vocabulary


def contest(models: Any, data: TextDataset, seed: int) -> TextContest:
    """Clones of the models by name, with a seed; without models, n-grams of several kinds and a recurrent one."""
    given = _line_up(data.train.vocabulary()) if models is None else _by_name(models)
    if not given:
        raise ValueError("there is no model to compare: give at least one, or None for the line-up.")
    copies = {name: _ready_copy(model, seed) for name, model in given.items()}
    return TextContest(copies, _shared_vocabulary(list(copies.values()), data.train))


def _by_name(models: Any) -> dict[str, Any]:
    """Models by the names that a dictionary gives them, else by what they are."""
    if isinstance(models, Mapping):
        return {str(name): _model(model) for name, model in models.items()}
    listed = [models] if isinstance(models, str) or hasattr(models, "fit") else models
    if not isinstance(listed, Iterable):
        raise TypeError(f"models must be a list, a dictionary or None, got {type(models).__name__}.")
    return _named([_model(model) for model in listed])


def _ready_copy(model: Any, seed: int) -> Any:
    """A clone with sound settings, and with the contest's seed where it has none of its own."""
    from sklearn.base import clone

    copy = clone(model)
    if copy.random_state is None:
        copy.set_params(random_state=seed)
    copy._validate_params()
    return copy


def _shared_vocabulary(models: list[Any], train: Corpus) -> Vocabulary:
    """The tokens that all models know: a model with fewer would gain by every rare word that it calls `<unk>`."""
    cuts = {(model.min_count, model.max_vocabulary) for model in models}
    if len(cuts) > 1:
        raise ValueError(
            "models of text can be compared on the same tokens only: give all the same min_count and max_vocabulary, "
            f"got {', '.join(map(str, sorted(cuts, key=str)))}."
        )
    ((min_count, max_size),) = cuts
    return train.vocabulary(min_count=min_count, max_size=max_size)


def some_sentences(corpus: Corpus, n: int | None, seed: int) -> Corpus:
    """The corpus, or n of its sentences at random, in order."""
    if n is None:
        return corpus
    sentences = list(corpus)
    chosen = np.sort(np.random.RandomState(seed).permutation(len(sentences))[:n])
    return Corpus([sentences[i] for i in chosen], tokenizer=corpus.tokenizer, name=corpus.name)


def text_sections(board: Leaderboard) -> str:
    """What each model writes, for the report."""
    rows = ""
    for entry in board.ranked:
        texts = entry.model.sample(_SENTENCES_SHOWN, random_state=board.random_state, max_length=40)
        spoken = "".join(f"<p>{escape(text if isinstance(text, str) else ' '.join(text)) or '—'}</p>" for text in texts)
        rows += f"<tr><td class='w'>{escape(entry.name)}</td><td>{spoken}</td></tr>"
    table = f"<div class='scroll'><table><tbody>{rows}</tbody></table></div>" if rows else ""
    return section("What they write", "Sentences drawn from each model, cut off after 40 tokens.", table)


def _line_up(vocabulary: Vocabulary) -> dict[str, Any]:
    """The best smoothing at four orders, the others once each, at an order that suits a million words; and an LSTM."""
    from likely.models.language.ngram.ngram import NGram

    models = [NGram(order) for order in (1, 2, 3, 5)]
    models += [
        NGram(5, "kneser_ney"),
        NGram(3, "absolute_discounting"),
        NGram(3, "witten_bell"),
        NGram(3, "katz"),
        NGram(2, "add_k", k=0.01),
        NGram(5, "stupid_backoff"),
        _recurrent(vocabulary),
    ]
    return _named(models)


def _recurrent(vocabulary: Vocabulary) -> Any:
    """An LSTM that sees some million tokens, or each of more once: a first look within minutes, not a record."""
    from likely.models.language.recurrent.recurrent_lm import RecurrentLM

    # Beyond some thousand words the softmax over all of them is most of the work, which noise contrast saves.
    is_large = len(vocabulary.tokens) > 5_000
    n_seen = 5_000_000 if is_large else 1_000_000
    n_epochs = max(1, min(20, n_seen // max(1, int(vocabulary.counts.sum()))))
    return RecurrentLM(
        (200,),
        tied=True,
        dropout=0.1,
        output="nce" if is_large else "softmax",
        n_noise=500,
        n_streams=40,
        learning_rate=8e-3,
        n_epochs=n_epochs,
    )


def _model(model: Any) -> Any:
    from likely.contract.sequence_model import SequenceModel
    from likely.storage import registry

    if isinstance(model, str):
        entry = registry.find(model)
        if entry.learns_from == "text" and not entry.has_evidence:
            raise ValueError(f"{entry.class_name} gives no probability of a sentence, so there is nothing to compare.")
        cls = registry.model_class(entry.class_name)
        model = cls() if issubclass(cls, SequenceModel) else cls
    if not isinstance(model, SequenceModel):
        known = ", ".join(entry.class_name for entry in registry.learning_from("text") if entry.has_evidence)
        shown = model.__name__ if isinstance(model, type) else repr(model)
        raise ValueError(f"the data are text, and {shown} is no model of text: there are {known}.")
    return model


def _named(models: list[Any]) -> dict[str, Any]:
    """What each model is, in words; with a number where that repeats."""
    out: dict[str, Any] = {}
    for model in models:
        name = base = model._describe()
        number = 2
        while name in out:
            name, number = f"{base} #{number}", number + 1
        out[name] = model
    return out
