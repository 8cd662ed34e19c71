"""Permutation-invariant MNIST: error with all labels, and what pretraining is worth with 1,000 of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

ERROR_BAR, GAIN_BAR = 1.3, 4.0  # per cent
FEW, N_DRAWS = 1000, 3


def run(*, small: bool, seed: int) -> Outcome:
    digits = Digits(small)
    recipe = recipes.PRETRAINING | ({"layers": (16,), "n_epochs": 1} if small else {})
    seconds, stack = stopwatch(lambda: digits.pretrain(recipe, seed))
    whole = {**recipes.FINE_TUNING} | ({"n_epochs": 1} if small else {})
    fitting, model = stopwatch(lambda: stack.classifier(**whole, random_state=seed).fit(digits.rows, digits.labels))
    error = 100 * (1 - digits.accuracy(model, "test"))
    few_seconds, few = stopwatch(lambda: few_labels(digits, stack, recipe["layers"], small, seed))
    gains = np.array(few["pretrained"]["test"]) - np.array(few["random start"]["test"])
    spread = float(gains.std(ddof=1) / np.sqrt(len(gains)))
    lines = [
        Line(
            what=f"MNIST, {'-'.join(map(str, (784, *stack.layers, 10)))}, {len(digits.labels):,} labels",
            ours=f"{error:.2f}% error",
            peer="1.33% published",
            quality=f"pretrained in {in_words(seconds)}, tuned in {in_words(fitting)}",
            bar=f"≤ {ERROR_BAR:g}%",
            reached=bool(error <= ERROR_BAR),
        ),
        Line(
            what=f"the same with {few['n_labels']:,} labels, gain by pretraining",
            ours=f"{gains.mean():.2f} ± {spread:.2f} points",
            peer="4.82 published",
            quality=f"{few['random start']['mean']:.2f}% → {few['pretrained']['mean']:.2f}% right, {N_DRAWS} draws",
            bar=f"≥ {GAIN_BAR:g}",
            reached=bool(gains.mean() >= GAIN_BAR),
        ),
    ]
    figures = {
        "pretraining": recipe,
        "fine_tuning": whole,
        "pretraining_seconds": seconds,
        "fine_tuning_seconds": fitting,
        "few_labels_seconds": few_seconds,
        "test_error": error,
        "gains": gains.tolist(),
        "few_labels": few,
    }
    return Outcome(lines, figures)


class Digits:
    """Grey MNIST: all 60,000 training rows, the last 10,000 of which choose recipes, and the test rows."""

    def __init__(self, small: bool) -> None:
        dataset = data.load("mnist", small=small, n_small=300, binarize=None)
        assert dataset.labels is not None
        self.schema = dataset.schema
        self.parts = {part: getattr(dataset, part) for part in ("train", "valid", "test")}
        self.truth = {part: dataset.labels[part][: len(rows)] for part, rows in self.parts.items()}
        self.rows = np.concatenate([self.parts["train"], self.parts["valid"]])
        self.labels = np.concatenate([self.truth["train"], self.truth["valid"]])

    def pretrain(self, recipe: dict[str, Any], seed: int) -> likely.PretrainedStack:
        """Layers learned from all training rows, labels unseen."""
        return likely.pretrain(self.rows, **recipe, as_probabilities=True, schema=self.schema, random_state=seed)

    def accuracy(self, model: likely.PretrainedClassifier, part: str) -> float:
        """Share of a part's rows that get their label."""
        return float(model.score(self.parts[part], self.truth[part]))


def few_labels(digits: Digits, stack: likely.PretrainedStack, layers: Any, small: bool, seed: int) -> dict[str, Any]:
    """Both starts with few labels: each with its best settings of one grid, by validation rows, then on test rows."""
    n = 50 if small else FEW
    grid = recipes.FEW_LABELS_GRID[:1] if small else recipes.FEW_LABELS_GRID
    shared = recipes.FEW_LABELS | ({"n_epochs": 2} if small else {})
    plain = {"pretrain": False, "as_probabilities": True, "schema": digits.schema}

    def fitted(pretrained: bool, settings: dict[str, Any], draw: int) -> likely.PretrainedClassifier:
        chosen = shared | settings | {"random_state": seed + draw}
        model = stack.classifier(**chosen) if pretrained else likely.PretrainedClassifier(layers, **plain, **chosen)
        own = np.random.default_rng(seed + draw).permutation(len(digits.parts["train"]))[:n]
        return model.fit(digits.parts["train"][own], digits.truth["train"][own])

    out: dict[str, Any] = {"n_labels": n, "settings": shared, "grid": grid}
    for name, pretrained in (("random start", False), ("pretrained", True)):
        valid = [100 * digits.accuracy(fitted(pretrained, settings, 0), "valid") for settings in grid]
        best = grid[int(np.argmax(valid))]
        test = [100 * digits.accuracy(fitted(pretrained, best, draw), "test") for draw in range(N_DRAWS)]
        out[name] = {"valid": valid, "best": best, "test": test, "mean": float(np.mean(test))}
    return out
