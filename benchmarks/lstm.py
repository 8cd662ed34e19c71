"""LSTM of 2 x 200 on WikiText-2 in about 20 minutes: test perplexity beside that of a 5-gram.

Both are judged alike: every token and </s> counted, every line on its own.
"""

from __future__ import annotations

import likely
from benchmarks import recipes
from benchmarks.data import wikitext
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

MINUTES = 20


def run(*, small: bool, seed: int) -> Outcome:
    train, valid, test = wikitext(small)
    vocabulary = train.vocabulary()
    recipe = recipes.LSTM_WIKITEXT2 | ({"layers": (4,), "n_epochs": 1} if small else {})
    model = likely.RecurrentLM(**recipe, random_state=seed)
    seconds, _ = stopwatch(lambda: model.fit(train, valid=valid, vocabulary=vocabulary))
    gram = likely.NGram(3 if small else 5).fit(train, vocabulary=vocabulary)
    ours, other = model.perplexity(test), gram.perplexity(test)
    line = Line(
        what=f"{model._describe()} on WikiText-2: test perplexity, {ours.convention}",
        ours=f"{float(ours):.1f}",
        peer=f"{float(other):.1f} 5-gram, modified Kneser-Ney",
        quality=f"{recipe['n_epochs']} epochs in {in_words(seconds)}",
        bar=f"< the 5-gram's, ≤ {MINUTES} min",
        reached=bool(float(ours) < float(other) and seconds <= 60 * MINUTES),
    )
    found = {"recipe": recipe, "seconds": seconds, "perplexity": float(ours), "ngram": float(other)}
    return Outcome([line], found | {"history": model.history_})
