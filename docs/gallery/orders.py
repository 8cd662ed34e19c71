"""Does the order of a chain matter? Evidence of held-out digits along 40 random orders, and their mixture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import MUTED, TYPE, dress, signed

OUT = Path(__file__).resolve().parents[2] / "docs" / "images" / "orders.png"
N_ORDERS = 40
SETTINGS: dict[str, dict[str, Any]] = {
    "one tree": {"n_trees": 1},
    "eight trees": {"n_trees": 8},
    "linear": {"conditional": "linear"},
}
COLOURS = {"one tree": "#d55e00", "eight trees": "#0072b2", "linear": "#009e73"}
NAMED = {"entropy": "^", "given": "s", "tree": "D"}


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    digits = likely.datasets.load("digits")
    columns = slice(18, 24) if small else slice(None)
    train, test = digits.train[:, columns], digits.test[:, columns]
    n_orders = 3 if small else N_ORDERS
    figure = Figure(figsize=(9.6, 4.2), dpi=80 if small else 110, layout="constrained")
    axes = figure.subplots()
    for row, (name, setting) in enumerate(SETTINGS.items()):
        draw(axes, row, name, *scores(setting, train, test, n_orders))
    axes.set_yticks(range(len(SETTINGS)), list(SETTINGS))
    axes.set_ylim(len(SETTINGS) - 0.4, -0.6)
    axes.xaxis.set_major_formatter(signed)
    for order, marker in NAMED.items():
        axes.scatter([], [], s=26, marker=marker, facecolor="white", edgecolor=MUTED, label=f'order="{order}"')
    axes.legend(loc="lower left", frameon=False, labelcolor=MUTED, fontsize=8.5)
    dress(axes, f"{n_orders} orders of the pixels", "mean log p of test digits, nats", "")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def scores(
    setting: dict[str, Any], train: np.ndarray, test: np.ndarray, n_orders: int
) -> tuple[np.ndarray, float, dict[str, float]]:
    """Mean log p along each random order, of their mixture, and along each named order."""
    rng = np.random.default_rng(0)
    orders = [rng.permutation(train.shape[1]).tolist() for _ in range(n_orders)]
    fit = lambda order: likely.Autoregressive(**setting, n_chains=1, order=order, random_state=0).fit(train)  # noqa: E731
    logs = np.stack([fit(order).score_samples(test) for order in orders])
    mixture = float(np.mean(np.logaddexp.reduce(logs, axis=0) - np.log(n_orders)))
    return logs.mean(axis=1), mixture, {order: fit(order).score(test) for order in NAMED}


def draw(axes: Axes, row: int, name: str, each: np.ndarray, mixture: float, named: dict[str, float]) -> None:
    rng = np.random.default_rng(0)
    axes.scatter(each, row + rng.uniform(-0.13, 0.13, len(each)), s=16, color=COLOURS[name], alpha=0.5, linewidth=0)
    axes.plot([mixture] * 2, [row - 0.3, row + 0.3], color=COLOURS[name], linewidth=2.5)
    axes.annotate("all of them, averaged", (mixture, row - 0.3), (3, 2), textcoords="offset points",
                  color=COLOURS[name], fontsize=8.5)  # fmt: skip
    for order, marker in NAMED.items():
        axes.scatter(named[order], row + 0.26, s=26, marker=marker, facecolor="white", edgecolor=COLOURS[name])


if __name__ == "__main__":
    main()
