"""How many rows does an entropy need? Shares alone are low on average, and three corrections of that."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from likely import information
from likely.information import Counts
from look import GRID, INK, MUTED, TYPE, dress

OUT = Path(__file__).resolve().parent.parent / "images" / "entropy_of_counts.png"
COLOURS = {"none": "#8a97a5", "miller-madow": "#0072b2", "grassberger": "#009e73", "chao-shen": "#d55e00"}
NAMES = {"none": "shares alone", "miller-madow": "Miller-Madow", "grassberger": "Grassberger", "chao-shen": "Chao-Shen"}
SIZES = (20, 50, 100, 200, 500, 1000, 2000)


def even(n_values: int) -> np.ndarray:
    return np.full(n_values, 1 / n_values)


def words(n_values: int) -> np.ndarray:
    """Zipf's law: the word of rank r is seen in proportion to 1/r."""
    p = 1 / np.arange(1, n_values + 1)
    return p / p.sum()


def estimates(p: np.ndarray, n_rows: int, correction: str, n_tables: int) -> np.ndarray:
    tables = np.random.default_rng(n_rows).multinomial(n_rows, p, size=n_tables)
    return np.array([information.entropy(Counts(table, correction)).value for table in tables])


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    sizes, n_tables = (SIZES[:2], 20) if small else (SIZES, 400)
    figure = Figure(figsize=(9.6, 4.2), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    draw(left, even(100), sizes, n_tables, "100 values, all alike")
    draw(right, words(1000), sizes, n_tables, "1000 words, by Zipf's law")
    left.legend(frameon=False, loc="lower right", fontsize=9)
    right.set_ylabel("")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(axes: Axes, p: np.ndarray, sizes: tuple[int, ...], n_tables: int, title: str) -> None:
    truth = information.entropy(p).value
    axes.axhline(0, color=INK, linewidth=0.9)
    for correction, colour in COLOURS.items():
        found = [estimates(p, n, correction, n_tables) - truth for n in sizes]
        means = np.array([values.mean() for values in found])
        spread = np.array([values.std() for values in found])
        axes.fill_between(sizes, means - spread, means + spread, color=colour, alpha=0.12, linewidth=0)
        axes.plot(sizes, means, color=colour, marker="o", markersize=4, linewidth=1.7, label=NAMES[correction])
        figures = ", ".join(f"{n}: {mean:+.2f}" for n, mean in zip(sizes, means, strict=True))
        print(f"{title}, {NAMES[correction]}: {figures}")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes.minorticks_off()
    axes.set_ylim(-3.2, 0.6)
    note = f"true entropy {truth:.2f} nats; band: one deviation of {n_tables} tables"
    axes.annotate(note, (0.02, 0.97), xycoords="axes fraction", va="top", color=MUTED, fontsize=9)
    dress(axes, title, "rows counted", "estimate − truth, nats")
    axes.grid(axis="x", color=GRID, linewidth=0)


if __name__ == "__main__":
    main()
