"""Skip-gram with negative sampling on WikiText-2, beside gensim's from a file of text: words a second, and WordSim-353.

100 components, window 5, 5 negatives, two threads, both from a file without `<unk>`, which gensim would take for a
word. Seconds are those of the whole way from that file to vectors, counting the words included; words are those that
an epoch reads, frequent ones that are thinned out among them, as gensim counts. Each round has a seed of its own, and
quality is the mean over rounds: Spearman's correlation of cosines with people's scores, by the same code for both.
"""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import likely
from benchmarks import data, peers, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import Timing, alone, in_turns
from likely.datasets.folder import find

BAR = 2.0
N_THREADS = 2


def run(*, small: bool, seed: int) -> Outcome:
    peers.prepare()
    recipe = recipes.SKIPGRAM | ({"n_epochs": 1} if small else {})
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        _write(text, 500 if small else None)
        race = _Race(text, recipe, seed)
        ours, _ = in_turns(race.ours, race.peer, n_rounds=1 if small else 3)
        timings = {"ours": ours}
        for name in ("in order", "nce", "cbow"):
            timings[name] = alone(partial(race.ours, name), n_rounds=0 if small else 2)
    figures = {
        "recipe": recipe | {"n_threads": N_THREADS},
        "n_words": race.n_words,
        "wordsim": race.wordsim,
        "seconds": {name: timing.to_json() for name, timing in timings.items()} | {"peer": race.peer_seconds},
        "log_z": timings["nce"].result.log_z_,
    }
    return Outcome(race.lines(timings), figures, race.versions)


class _Race:
    """Fits of both, each call with the next seed; keeps what they reach."""

    def __init__(self, text: Path, recipe: dict[str, Any], seed: int):
        self.text, self.recipe, self.seed = text, recipe, seed
        self.pairs = find("wordvec/wordsim353.tsv", "WordSim-353")
        self.wordsim: dict[str, list[float]] = {}
        self.peer_seconds: list[dict[str, float]] = []
        self.n_words, self.versions = 0, {}

    def ours(self, name: str = "ours") -> likely.SkipGram:
        options = {"deterministic": False, "n_threads": N_THREADS} | self.recipe | _CHANGES[name]
        return self._judged(name, likely.SkipGram(**options, random_state=self._next(name)).fit(self.text))

    def peer(self) -> likely.SkipGram:
        out = str(self.text.with_name("gensim.bin"))
        options = self.recipe | {"n_threads": N_THREADS, "seed": self._next("peer")}
        answer = peers.run("peer_gensim", text=str(self.text), out=out, **options)
        self.peer_seconds.append(answer["seconds"])
        self.n_words, self.versions = answer["n_words"], answer["versions"]
        return self._judged("peer", likely.SkipGram.load_word2vec(out, binary=True))

    def lines(self, timings: dict[str, Timing]) -> list[Line]:
        # the peer by its own clock: without the start of its process and the writing of vectors
        seconds = statistics.median(sum(one.values()) for one in self.peer_seconds)
        mean = {name: statistics.mean(values) for name, values in self.wordsim.items()}
        lines = []
        for name, timing in timings.items():
            ratio = seconds / timing.median
            quality = f"WordSim-353: ours {mean[name]:.3f}, peer {mean['peer']:.3f}"
            if name == "nce":
                quality += "; log Z {mean:.2f} ± {std:.2f}".format(**timing.result.log_z_)
            words = [f"{self.n_words * self.recipe['n_epochs'] / s:,.0f} words/s" for s in (timing.median, seconds)]
            bar, reached = "", None
            if name == "ours":
                bar, reached = f"≥ {BAR:g}×, no worse", bool(ratio >= BAR and mean[name] >= mean["peer"])
            lines.append(Line(_TITLES[name], *words, ratio, quality, bar, reached))
        return lines

    def _next(self, name: str) -> int:
        return self.seed + len(self.wordsim.get(name, []))

    def _judged(self, name: str, model: likely.SkipGram) -> likely.SkipGram:
        self.wordsim.setdefault(name, []).append(float(model.evaluate_pairs(self.pairs)))
        return model


_CHANGES: dict[str, dict[str, Any]] = {
    "ours": {},
    "in order": {"deterministic": True},
    "nce": {"loss": "nce"},
    "cbow": {"architecture": "cbow", "learning_rate": None},
}
_TITLES = {
    "ours": "skip-gram, negative sampling, lock-free",
    "in order": "the same, equal bits for any number of threads",
    "nce": "skip-gram, noise contrast, lock-free",
    "cbow": "whole windows (CBOW), lock-free",
}


def _write(path: Path, n_lines: int | None) -> None:
    """WikiText-2's training lines that have words, without `<unk>`."""
    lines = (" ".join(token for token in sentence if token != "<unk>") for sentence in data.load("wikitext2").train)
    path.write_text("\n".join(islice(filter(None, lines), n_lines)) + "\n", encoding="utf-8")
