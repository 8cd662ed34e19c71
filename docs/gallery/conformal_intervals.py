"""Intervals that hold what they say: conformal ones of one width and of many, and coverage from split to split."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats
from sklearn.neighbors import NearestNeighbors

from likely.calibration import SplitConformal
from look import GRID, INK, MUTED, TYPE, dress

OUT = Path(__file__).resolve().parent.parent / "images" / "conformal_intervals.png"
LEVEL, N_CALIBRATION = 0.9, 200
COLOURS = {"residual": "#d55e00", "scaled": "#0072b2"}


class Normal(NamedTuple):
    """Means and deviations of the predicted number."""

    means: np.ndarray
    deviations: np.ndarray

    def mean(self) -> np.ndarray:
        """Expected numbers."""
        return self.means

    def std(self) -> np.ndarray:
        """Their deviations."""
        return self.deviations


class Neighbours:
    """Predicts the mean and the deviation of the nearest rows; far too sure of itself with few of them."""

    def __init__(self, x: np.ndarray, y: np.ndarray, n_neighbours: int = 12):
        self.y, self.search = y, NearestNeighbors(n_neighbors=n_neighbours).fit(x)

    def condition(self, x: np.ndarray) -> Normal:
        """As a `likely.Predictor` has it."""
        near = self.y[self.search.kneighbors(x, return_distance=False)]
        return Normal(near.mean(axis=1), near.std(axis=1))

    def predict(self, x: np.ndarray) -> np.ndarray:
        """As in scikit-learn."""
        return self.condition(x).means


def data(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A sine whose noise grows along the way."""
    x = rng.uniform(0, 10, (n, 1))
    return x, np.sin(x[:, 0]) + (0.08 + 0.09 * x[:, 0]) * rng.standard_normal(n)


def held(low: np.ndarray, high: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((low <= y) & (y <= high)))


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    rng = np.random.default_rng(0)
    model = Neighbours(*data(rng, 400))
    x, y = data(rng, 2000)
    figure = Figure(figsize=(10.4, 4.2), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.35, 1])
    rows = data(rng, N_CALIBRATION)
    draw_intervals(left, model, rows, x, y)
    draw_coverage(right, model, rng, 40 if small else 1500)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_intervals(
    axes: Axes, model: Neighbours, rows: tuple[np.ndarray, np.ndarray], x: np.ndarray, y: np.ndarray
) -> None:
    axes.scatter(x[:500, 0], y[:500], s=5, color=MUTED, alpha=0.5, linewidths=0)
    grid = np.linspace(0.02, 9.98, 300)[:, None]
    for score, colour in COLOURS.items():
        conformal = SplitConformal(model, score=score).calibrate(*rows)
        for end in conformal.interval(grid, LEVEL):
            axes.plot(grid[:, 0], end, color=colour, linewidth=1.5)
        low, high = conformal.interval(x, LEVEL)
        late = x[:, 0] > 7
        shares = held(low, high, y), held(low[~late], high[~late], y[~late]), held(low[late], high[late], y[late])
        words = f"{score}: {shares[0]:.1%} held; {shares[1]:.1%} before 7, {shares[2]:.1%} after"
        axes.plot([], [], color=colour, linewidth=2, label=words)
        print(words)
    own = model.condition(x)
    margin = stats.norm.ppf(0.5 + LEVEL / 2) * own.deviations
    print(f"the predictor's own 90%: {held(own.means - margin, own.means + margin, y):.1%}")
    axes.legend(frameon=False, loc="lower left", fontsize=9)
    axes.set_ylim(-5.2, 3.8)
    dress(axes, f"90% intervals from {N_CALIBRATION} calibration rows", "x", "y")


def draw_coverage(axes: Axes, model: Neighbours, rng: np.random.Generator, n_splits: int) -> None:
    x, y = data(rng, 200 * n_splits)
    own = model.condition(x)
    scores, shares = np.abs(y - own.means) / own.deviations, []  # of new rows, for all splits
    for _ in range(n_splits):
        conformal = SplitConformal(model, score="scaled").calibrate(*data(rng, N_CALIBRATION))
        shares.append(float(np.mean(scores <= conformal.threshold(LEVEL))))
    found = conformal.guarantee(LEVEL)
    axes.hist(shares, 30, density=True, color=COLOURS["scaled"], alpha=0.55)
    at = np.linspace(0.8, 0.98, 300)
    rank = round(found.at_least * (N_CALIBRATION + 1))
    axes.plot(at, stats.beta(rank, N_CALIBRATION + 1 - rank).pdf(at), color=INK, linewidth=1.4)
    axes.axvspan(found.low, found.high, color=GRID, alpha=0.6, zorder=0, linewidth=0)
    axes.set_yticks([])
    axes.set_xticks([0.8, 0.85, 0.9, 0.95], ["80%", "85%", "90%", "95%"])
    text = f"mean {np.mean(shares):.1%}, theory {found.at_least:.1%}\ngrey: `guarantee`, 95%"
    axes.annotate(text, (0.03, 0.97), xycoords="axes fraction", va="top", fontsize=9, color=MUTED)
    print(f"mean coverage of {n_splits} splits {np.mean(shares):.4f}, expected {found.at_least:.4f}")
    dress(axes, f"Coverage of {n_splits:,} calibrations; line: theory", "share of new rows held", "")


if __name__ == "__main__":
    main()
