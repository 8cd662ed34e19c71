"""LSTM of 2 x 200 over all 33,278 words of WikiText-2: tokens a second beside PyTorch's nn.LSTM.

Both learn from the same stretches of the first 70,000 tokens, in batches of 20 x 35, full softmax, Adam and clipped
gradients; the peer carries its state on without forgetting it where sentences begin, which costs it nothing.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import numpy as np

import likely
from benchmarks import peers
from benchmarks.data import wikitext
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_turns
from likely.models.language.recurrent.recurrent_lm import stretched

BAR, N_TOKENS = 1.0, 70_000


def run(*, small: bool, seed: int) -> Outcome:
    peers.prepare()
    train, _, _ = wikitext(small)
    vocabulary = train.vocabulary()
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

        timing, _ = in_turns(ours, peer, n_rounds=1 if small else 2)
    seen = len(encoded.tokens)
    rate = seen / timing.median
    peer_rate = rows.size / 2 / statistics.median([s for one in answers for s in one["seconds"]])
    losses = timing.result.history_["loss"][-1], answers[-1]["loss"]
    line = Line(
        what=f"LSTM 2 x {size}, {len(vocabulary.tokens):,} words: tokens a second of an epoch",
        ours=f"{rate:,.0f}",
        peer=f"{peer_rate:,.0f} nn.LSTM",
        ratio=rate / peer_rate,
        quality=f"its mean loss in nats: ours {losses[0]:.2f}, peer {losses[1]:.2f}",
        bar=f"≥ {BAR:g}×",
        reached=bool(rate >= BAR * peer_rate),
    )
    figures = {"ours_seconds": timing.to_json(), "peer": answers, "tokens": seen}
    return Outcome([line], figures, answers[-1]["versions"])
