"""Noise contrast beside the softmax for a language model of 33,278 words: time to equal perplexity.

The same LSTM learns from the first 12,000 lines of WikiText-2, once with the softmax over all words and once against
500 words of noise; perplexities are of validation text and normalised for both. The softmax makes two passes; noise
contrast starts afresh with more and more passes until it is as good.
"""

from __future__ import annotations

import itertools
from typing import Any

import likely
from benchmarks.data import wikitext
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

BAR = 10.0
RECIPE: dict[str, Any] = {"layers": (200,), "length": 35, "n_streams": 20, "learning_rate": 3e-3, "tied": True}
N_LINES, N_EPOCHS, ATTEMPTS = 12_000, 2, (2, 4, 6, 9)


def run(*, small: bool, seed: int) -> Outcome:
    whole, valid, _ = wikitext(small)
    train, vocabulary = likely.Corpus(list(itertools.islice(whole, N_LINES))), whole.vocabulary()
    recipe = RECIPE | ({"layers": (4,), "length": 5, "n_streams": 2} if small else {})

    def attempt(output: str, n_epochs: int) -> dict[str, Any]:
        model = likely.RecurrentLM(
            **recipe, output=output, n_noise=8 if small else 500, n_epochs=n_epochs, random_state=seed
        )
        seconds, _ = stopwatch(lambda: model.fit(train, vocabulary=vocabulary))
        return {"epochs": n_epochs, "seconds": seconds, "perplexity": float(model.perplexity(valid))}

    for output in ("softmax", "nce"):  # compiled before the clock starts
        likely.RecurrentLM(**recipe, output=output, n_noise=8 if small else 500, n_epochs=1, random_state=seed).fit(
            likely.Corpus(list(itertools.islice(train, 10 if small else 100))), vocabulary=vocabulary
        )
    softmax = attempt("softmax", 1 if small else N_EPOCHS)
    tries = []
    for n_epochs in ATTEMPTS[:1] if small else ATTEMPTS:
        tries.append(attempt("nce", n_epochs))
        if tries[-1]["perplexity"] <= softmax["perplexity"]:
            break
    last = tries[-1]
    equal = last["perplexity"] <= softmax["perplexity"]
    ratio = softmax["seconds"] / last["seconds"]
    line = Line(
        what=f"LSTM {recipe['layers'][0]}, {len(vocabulary.tokens):,} words: noise contrast to softmax's perplexity",
        ours=in_words(last["seconds"]),
        peer=f"{in_words(softmax['seconds'])} softmax",
        ratio=ratio,
        quality=f"validation perplexity: noise contrast {last['perplexity']:.1f}, softmax {softmax['perplexity']:.1f}",
        bar=f"≥ {BAR:g}× at equal perplexity",
        reached=bool(equal and ratio >= BAR),
    )
    return Outcome([line], {"softmax": softmax, "nce": tries, "recipe": recipe})
