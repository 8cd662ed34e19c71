"""Does 80% mean 80%? Reliability curves of three classifiers, with the band of a calibrated one."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from likely import calibration
from look import GRID, MUTED, TYPE, dress

OUT = Path(__file__).resolve().parent.parent / "images" / "reliability.png"
COLOURS = ("#0072b2", "#009e73", "#d55e00")


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    options = {"n_features": 12, "n_informative": 4, "n_redundant": 6, "class_sep": 0.7, "n_clusters_per_class": 1}
    return make_classification(n, **options, random_state=3)


def classifiers(n_trees: int) -> dict[str, object]:
    forest = RandomForestClassifier(n_trees, min_samples_leaf=5, random_state=0)
    return {"Logistic regression": LogisticRegression(), "Random forest": forest, "Naive Bayes": GaussianNB()}


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    n = 300 if small else 3000
    X, y = data(n)
    half = n // 3
    figure = Figure(figsize=(10.4, 4.2), dpi=130, layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, (name, model), colour in zip(panels, classifiers(10 if small else 200).items(), COLOURS, strict=True):
        probabilities = model.fit(X[:half], y[:half]).predict_proba(X[half:])[:, 1]  # type: ignore[attr-defined]
        draw(axes, name, probabilities, y[half:], colour)
    for axes in panels[1:]:
        axes.set_ylabel("")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(axes: Axes, name: str, probabilities: np.ndarray, y: np.ndarray, colour: str) -> None:
    curve = calibration.reliability(probabilities, y, n_bins=12)
    error = calibration.calibration_error(probabilities, y, n_bins=12)
    print(f"{name}: {error}")
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.fill_between(curve.predicted, curve.expected_low, curve.expected_high, color=GRID, linewidth=0)
    axes.vlines(curve.predicted, curve.low, curve.high, color=colour, linewidth=1)
    axes.plot(curve.predicted, curve.observed, color=colour, marker="o", markersize=4.5, linewidth=1.6)
    lines = [
        f"error {error.value:.3f} [{error.low:.3f}, {error.high:.3f}]",
        f"uncorrected {error.uncorrected:.3f}, chance {error.chance:.3f}",
        f"Brier score {calibration.brier_score(probabilities, y).mean:.3f}",
    ]
    axes.annotate("\n".join(lines), (0.03, 0.97), xycoords="axes fraction", va="top", fontsize=9, color=MUTED)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    dress(axes, name, "predicted probability", f"share of {len(y):,} test rows")


if __name__ == "__main__":
    main()
