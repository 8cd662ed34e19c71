"""Noise contrast beside the softmax for a language model of 33,278 words: time to equal perplexity.

The same LSTM learns from the first 4,000 lines of WikiText-2, once with the softmax over all words and once against 500
words of noise; perplexities are of 400 lines of validation text, and normalised for both. The softmax makes two passes,
at each of two learning rates, of which the better counts and its seconds alone; noise contrast starts afresh with more
and more passes, at one of these rates, until it is as good.
"""

from __future__ import annotations

import itertools
from typing import Any

import likely
from benchmarks.data import wikitext
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

BAR = 10.0
RECIPE: dict[str, Any] = {"layers": (200,), "length": 35, "n_streams": 40, "tied": True}
N_LINES, N_VALID, N_EPOCHS, ATTEMPTS = 4_000, 400, 2, (2, 3, 4, 6, 9)
RATES = (8e-3, 4e-3)  # the first is that of noise contrast


def run(*, small: bool, seed: int) -> Outcome:
    whole, held_out, _ = wikitext(small)
    vocabulary = whole.vocabulary()
    train, valid = (likely.Corpus(list(itertools.islice(c, n))) for c, n in ((whole, N_LINES), (held_out, N_VALID)))
    recipe = RECIPE | ({"layers": (4,), "length": 5, "n_streams": 2} if small else {})

    def attempt(output: str, n_epochs: int, rate: float) -> dict[str, Any]:
        options = {"output": output, "n_noise": 8 if small else 500, "n_epochs": n_epochs, "learning_rate": rate}
        model = likely.RecurrentLM(**recipe, **options, random_state=seed)
        seconds, _ = stopwatch(lambda: model.fit(train, vocabulary=vocabulary))
        perplexity = float(model.perplexity(valid))
        print(f"  {output}, rate {rate:g}, {n_epochs} epochs: {perplexity:.1f} in {in_words(seconds)}", flush=True)
        return {"learning_rate": rate, "epochs": n_epochs, "seconds": seconds, "perplexity": perplexity}

    every = [attempt("softmax", 1 if small else N_EPOCHS, rate) for rate in RATES]
    softmax = min(every, key=lambda found: found["perplexity"])
    tries = []
    for n_epochs in ATTEMPTS[:1] if small else ATTEMPTS:
        tries.append(attempt("nce", n_epochs, RATES[0]))
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
    return Outcome([line], {"softmax": every, "nce": tries, "recipe": recipe})
