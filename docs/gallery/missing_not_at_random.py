"""What becomes of estimates when cells are missing for a reason: the mean and the intervals of a column with holes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

import likely
from look import MUTED, TYPE, dress, signed

OUT = Path(__file__).resolve().parent.parent / "images" / "missing_not_at_random.png"
# What the chance of a hole in the last column depends on, and its colour: Okabe and Ito's.
REASONS = {"nothing": "#009e73", "an observed column": "#0072b2", "the value itself": "#d55e00"}
MODELS = {
    "FactorAnalysis": ((0, (4, 2)), lambda: likely.FactorAnalysis(1, random_state=0)),
    "Mixture": ("-", lambda: likely.Mixture(2, covariance="full", random_state=0)),
}
LEVEL, N_DRAWS = 0.9, 200


class Found(NamedTuple):
    """Of a column in which half of the cells are missing, in its standard deviations."""

    off: float  # the mean of the column, completed, less the true one
    off_of_observed: float  # the mean of the cells that are there, less the true one
    covered: float  # share of the missing cells within their interval


def complete_rows(rng: np.random.Generator, n: int) -> np.ndarray:
    """Three views of one cause: any two have a correlation of 0.8."""
    return np.sqrt(0.8) * rng.normal(size=(n, 1)) + np.sqrt(0.2) * rng.normal(size=(n, 3))


def with_holes(rng: np.random.Generator, rows: np.ndarray, reason: str, strength: float) -> np.ndarray:
    """The last column is missing with probability 1 / (1 + exp(-strength × what it depends on))."""
    cause = {"nothing": rng.normal(size=len(rows)), "an observed column": rows[:, 0], "the value itself": rows[:, 2]}
    holes = rows.copy()
    holes[rng.random(len(rows)) < 1 / (1 + np.exp(-strength * cause[reason])), 2] = np.nan
    return holes


def found(rows: np.ndarray, holes: np.ndarray, model: likely.Model) -> Found:
    draws = np.stack(model.fit(holes).condition(holes).sample(N_DRAWS, random_state=0))[:, :, 2]
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    truth, hidden = rows[:, 2], np.isnan(holes[:, 2])
    covered = np.mean((low <= truth) & (truth <= high), where=hidden)
    return Found(draws.mean() - truth.mean(), truth[~hidden].mean() - truth.mean(), covered)


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    strengths = np.array([0.0, 3.0]) if small else np.linspace(0, 4, 9)
    rng = np.random.default_rng(0)
    rows = complete_rows(rng, 200 if small else 4000)
    figure = Figure(figsize=(9.8, 4.4), dpi=80 if small else 120, layout="constrained")
    left, right = figure.subplots(1, 2)
    for reason, colour in REASONS.items():
        tables = [with_holes(rng, rows, reason, strength) for strength in strengths]
        for name, (line, make) in MODELS.items():
            results = [found(rows, holes, make()) for holes in tables]
            look = {"color": colour, "linestyle": line, "linewidth": 1.8, "label": f"{reason}, {name}"}
            left.plot(strengths, [one.off for one in results], **look)
            right.plot(strengths, [one.covered for one in results], **look)
            print(f"{name}, {reason}: " + ", ".join(f"{one.off:+.2f} {one.covered:.2f}" for one in results))
        observed = [one.off_of_observed for one in results]
        left.plot(strengths, observed, color=colour, linestyle=":", linewidth=1.4, alpha=0.8)
    finish(left, right, strengths[-1])
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def finish(left: Axes, right: Axes, most: float) -> None:
    label = "how much a hole depends on it (log odds per deviation)"
    dress(left, "The mean of a column, half of it missing", label, "estimate − truth, in deviations")
    left.yaxis.set_major_formatter(FuncFormatter(signed))
    left.set_ylim(bottom=-0.85)
    left.annotate("dotted: the mean of the cells that are there", (0.03, 0.03), xycoords="axes fraction", color=MUTED)
    dress(right, f"Missing cells inside their {LEVEL:.0%} interval", label, "share covered")
    right.axhline(LEVEL, color=MUTED, linewidth=1, linestyle=(0, (1, 2)))
    right.annotate("as stated", (most, LEVEL), (0, 16), textcoords="offset points", ha="right", color=MUTED, fontsize=9)
    right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    right.legend(frameon=False, loc="lower left", fontsize=9, title="a hole depends on", alignment="left")
    right.set_ylim(0.15, 1.0)


if __name__ == "__main__":
    main()
