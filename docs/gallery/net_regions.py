"""Linear regions of rectifier networks in the plane: trained on two spirals, and folding the square upon itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from likely.nets import MLP
from likely.nets.regions import Rectifiers, cells, folding_network, regions_on_plane
from likely.training import TrainingConfig, train
from look import MUTED, TYPE, square

OUT = Path(__file__).resolve().parent.parent / "images" / "net_regions.png"
WIDTHS = ((30,), (15, 15), (10, 10, 10))  # 30 units each
SCALE = 3.0  # of the spirals
LIMIT = 1.2 * SCALE


def spirals(n: int) -> np.ndarray:
    """Points of two arms, with the arm in the last column."""
    random = np.random.default_rng(0)
    arm, turn = np.arange(n) % 2, np.sqrt(random.uniform(0.02, 1, n))
    angle = 4.2 * turn + np.pi * arm
    place = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1) + 0.02 * random.normal(size=(n, 2))
    return np.column_stack([SCALE * place, arm]).astype(np.float32)


def logistic(net, batch, key, state):
    margin = net(batch.x[:, :2])[:, 0] * (2 * batch.x[:, 2] - 1)
    return jnp.mean(batch.weight * jax.nn.softplus(-margin)), (state, {})


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    rows = spirals(60 if small else 400)
    config = TrainingConfig(n_epochs=2 if small else 4000, batch_size=None, learning_rate=0.02, schedule="cosine")
    figure = Figure(figsize=(9.6, 6.8), dpi=60 if small else 85, layout="constrained")
    above, below = figure.subplots(2, 3)
    for panel, widths in zip(above, WIDTHS[:1] if small else WIDTHS, strict=False):
        net = MLP(jax.random.key(1), 2, 1, hidden=widths, activation="relu")
        net = train(net, logistic, rows, config=config, key=jax.random.key(0)).module
        polygons = regions_on_plane(net, [-LIMIT, -LIMIT], [2 * LIMIT, 0], [0, 2 * LIMIT])
        draw(panel, polygons, -LIMIT, 2 * LIMIT, partial(log_odds, Rectifiers.of(net)))
        for arm, colour in enumerate(("#d55e00", "#0072b2")):
            own = rows[rows[:, 2] == arm]
            panel.plot(*own[:, :2].T, "o", markersize=1.2, color=colour, alpha=0.7)
        layers = "one layer" if len(widths) == 1 else f"{len(widths)} layers"
        note = f", at most {cells(30, 2)}" if len(widths) == 1 else ""
        label(panel, f"30 units in {layers}", f"{len(polygons)} regions{note}")
    for panel, depth in zip(below, (1,) if small else (1, 2, 3), strict=False):
        net = folding_network(2, 2, depth)
        polygons = regions_on_plane(net, [0, 0], [1, 0], [0, 1])
        draw(panel, polygons, 0.0, 1.0, partial(parity, net))
        panel.set(xlim=(0, 1), ylim=(0, 1))
        label(panel, f"folded {depth} time{'s' * (depth > 1)}, {4 * depth} units", f"{len(polygons)} regions")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(panel, polygons: list[np.ndarray], corner: float, side: float, colour) -> None:
    """Polygons in a colour from −1 to 1 that belongs to their middle."""
    places = [corner + side * polygon for polygon in polygons]
    values = colour(np.array([place.mean(axis=0) for place in places]))
    shades = PolyCollection(places, array=values, cmap="RdBu", edgecolor="white", linewidth=0.4, alpha=0.7)
    shades.set_clim(-1, 1)
    panel.add_collection(shades)
    square(panel, LIMIT)


def log_odds(net: Rectifiers, x: np.ndarray) -> np.ndarray:
    return np.tanh(0.3 * net(x)[:, 0])


def parity(net: Rectifiers, x: np.ndarray) -> np.ndarray:
    """Neighbours differ in one unit, and so in colour."""
    return 0.4 * (-1.0) ** net.pattern(x).sum(axis=1)


def label(panel, title: str, note: str) -> None:
    panel.set_title(title, loc="left", fontweight="bold")
    panel.set_xlabel(note, color=MUTED, loc="left")


if __name__ == "__main__":
    main()
