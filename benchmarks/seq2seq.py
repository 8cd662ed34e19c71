"""Seq2Seq: strings to reverse and dates to normalise, exactly right or not, and where the attention looks.

Both tasks are generated; test pairs are of another seed, and no source of theirs was trained on. The attention's map is
summed up by a correlation: between the place that a letter of the answer looks at most and the place where the letter
that it is stands in the source. For a reversal that is the anti-diagonal. Without attention the same network must keep
the whole string in its state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import likely
from benchmarks import recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch
from likely.datasets.named.sequence_tasks import date_task, reversal_task

BAR = 0.99
N_TRAIN, N_TEST = 10_000, 1_000


def run(*, small: bool, seed: int) -> Outcome:
    found = [one(task, seed, small, attention) for task, attention in cases(small)]
    lines = [
        Line(
            what=f"{case['task']}, {'with' if case['attention'] else 'without'} attention",
            ours=f"{case['exact']:.1%} exact",
            quality=_words(case) + f", {in_words(case['seconds'])}",
            bar=f"≥ {BAR:.0%}" if case["attention"] else "",
            reached=bool(case["exact"] >= BAR) if case["attention"] else None,
        )
        for case in found
    ]
    return Outcome(lines, {"cases": found})


def cases(small: bool) -> list[tuple[str, bool]]:
    """Tasks, with attention or without."""
    return [("reversal", True)] if small else [("reversal", True), ("dates", True), ("reversal", False)]


def one(task: str, seed: int, small: bool, attention: bool = True) -> dict[str, Any]:
    """Train on a task, and judge by pairs that were not seen."""
    model, seconds = trained(task, seed, small, attention)
    X, y = unseen(task, 20 if small else N_TEST, seed, set(pairs(task, *_sizes(small), seed)[0]))
    figures = {"task": task, "attention": attention, "seconds": seconds, "exact": model.score(X, y), "n_test": len(X)}
    figures["nats_per_target"] = -float(model.log_prob(X, y).mean())
    if attention and task == "reversal":
        figures["correlation"] = correlation(model, X[:20], y[:20])
    return figures


def trained(task: str, seed: int, small: bool, attention: bool = True) -> tuple[likely.Seq2Seq, float]:
    """A model, and the seconds that it took."""
    recipe = recipes.SEQ2SEQ | {"n_epochs": recipes.SEQ2SEQ_EPOCHS[task], "attention": attention}
    if small:
        recipe |= {"n_hidden": 8, "n_embedding": 4, "n_epochs": 1, "cell": "rnn", "bidirectional": False}
    model = likely.Seq2Seq(**recipe, random_state=seed)
    seconds, _ = stopwatch(lambda: model.fit(*pairs(task, *_sizes(small), seed)))
    return model, seconds


def pairs(task: str, n: int, longest: int, seed: int) -> tuple[list[str], list[str]]:
    """Pairs of a task."""
    if task == "dates":
        return date_task(n, seed=seed)
    return reversal_task(n, lengths=(1, longest), seed=seed)


def unseen(task: str, n: int, seed: int, seen: set[str]) -> tuple[list[str], list[str]]:
    """Pairs whose source is not among those seen."""
    longest = 12 if n > 100 else 5
    X, y = pairs(task, 2 * n, longest, seed + 1_000_000)
    fresh = [(a, b) for a, b in zip(X, y, strict=True) if a not in seen][:n]
    return [a for a, _ in fresh], [b for _, b in fresh]


def correlation(model: likely.Seq2Seq, X: list[str], y: list[str]) -> float:
    """Between the places looked at most and those of a perfect reversal; letters only, no ends."""
    looked, right = [], []
    for source, target in zip(X, y, strict=True):
        weights = model.attention_map(source, target)[: len(target), : len(source)]
        looked.extend(weights.argmax(axis=1) / max(1, len(source) - 1))
        right.extend(np.arange(len(source))[::-1] / max(1, len(source) - 1))
    return float(np.corrcoef(looked, right)[0, 1]) if np.std(looked) > 0 else 0.0


def _sizes(small: bool) -> tuple[int, int]:
    return (50, 5) if small else (N_TRAIN, 12)


def _words(case: dict[str, Any]) -> str:
    text = f"{case['nats_per_target']:.2g} nats a target"
    return f"{text}, looks where it should: r = {case['correlation']:.2f}" if "correlation" in case else text
