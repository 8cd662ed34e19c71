"""LSTM of 2 x 200 on WikiText-2: tokens a second beside PyTorch's nn.LSTM, then perplexity beside a 5-gram's.

For the speed both learn from the same stretches of the first 70,000 tokens, in batches of 20 x 35, full softmax over
all 33,278 words, Adam and clipped gradients; the peer carries its state on without forgetting it where sentences begin,
which costs it nothing. Then ours is trained for about 20 minutes, and judged on the test text as the 5-gram is: every
token and </s> counted, every line on its own.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import numpy as np

import likely
from benchmarks import data, peers, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_turns, in_words, stopwatch
from likely.models.language.recurrent_lm import stretched

BAR, N_TOKENS = 1.0, 70_000


def run(*, small: bool, seed: int) -> Outcome:
    train, valid, test = _text(small)
    vocabulary = train.vocabulary()
    speed_line, speed, versions = _speed(train, vocabulary, small, seed)
    quality_line, quality = _quality(train, valid, test, vocabulary, small, seed)
    return Outcome([speed_line, quality_line], {"speed": speed, "quality": quality}, versions)


def _text(small: bool) -> tuple:
    if small:
        lines = [f"the {a} {b} the {c}" for a in "abc" for b in "de" for c in "fgh"]
        return tuple(likely.Corpus(part) for part in (lines[::2], lines[1:4], lines[4:9]))
    dataset = data.load("wikitext2")
    return dataset.train, dataset.valid, dataset.test


def _speed(train, vocabulary, small: bool, seed: int) -> tuple[Line, dict, dict]:
    peers.prepare()
    size, n_streams, length = (4, 2, 5) if small else (200, 20, 35)
    lines = [sentence for sentence, _ in zip(train, range(20 if small else 1200), strict=False)]
    encoded = likely.Corpus(lines).encode(vocabulary)
    n = min(len(encoded.tokens), N_TOKENS)
    rows = stretched(encoded, n_streams, length)[: n // length // n_streams * n_streams]
    recipe = {"layers": (size, size), "n_streams": n_streams, "length": length, "schedule": "constant", "n_epochs": 1}
    answers = []

    def ours() -> likely.RecurrentLM:
        return likely.RecurrentLM(**recipe, random_state=seed).fit(likely.Corpus(lines), vocabulary=vocabulary)

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "stretches.npy")
        np.save(path, rows.reshape(-1, n_streams, 2 * length))

        def peer() -> None:
            about = {"n_tokens": len(vocabulary.tokens), "size": size, "n_layers": 2, "learning_rate": 2e-3}
            answers.append(peers.run("peer_lstm_torch", stretches=path, **about, seed=seed, n_repeats=1))

        timing, _ = in_turns(ours, peer, n_rounds=1 if small else 3)
    seen = len(encoded.tokens)
    rate = seen / timing.median
    peer_rate = rows.size / 2 / statistics.median([s for one in answers for s in one["seconds"]])
    line = Line(
        what=f"LSTM 2 x {size}, {len(vocabulary.tokens):,} words: tokens a second of an epoch",
        ours=f"{rate:,.0f}",
        peer=f"{peer_rate:,.0f} nn.LSTM",
        ratio=rate / peer_rate,
        quality=f"loss at its end: ours {timing.result.history_['loss'][-1]:.2f}, peer {answers[-1]['loss']:.2f}",
        bar=f"≥ {BAR:g}×",
        reached=bool(rate >= BAR * peer_rate),
    )
    return line, {"ours_seconds": timing.to_json(), "peer": answers, "tokens": seen}, answers[-1]["versions"]


def _quality(train, valid, test, vocabulary, small: bool, seed: int) -> tuple[Line, dict]:
    recipe = recipes.LSTM_WIKITEXT2 | ({"layers": (4,), "n_epochs": 1} if small else {})
    model = likely.RecurrentLM(**recipe, random_state=seed)
    seconds, _ = stopwatch(lambda: model.fit(train, valid=valid, vocabulary=vocabulary))
    gram = likely.NGram(3 if small else 5).fit(train, vocabulary=vocabulary)
    ours, other = model.perplexity(test), gram.perplexity(test)
    line = Line(
        what=f"{model._describe()} on WikiText-2: test perplexity, {ours.convention}",
        ours=f"{float(ours):.1f}",
        peer=f"{float(other):.1f} 5-gram, modified Kneser-Ney",
        quality=f"in {in_words(seconds)}",
        bar="< the 5-gram's",
        reached=bool(float(ours) < float(other)),
    )
    found = {"recipe": recipe, "seconds": seconds, "perplexity": float(ours), "ngram": float(other)}
    return line, found | {"history": model.history_}
