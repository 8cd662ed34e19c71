"""What an RBM learns from digits: the filters of its hidden units, plain and sparse, and its Gibbs chains."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

import likely
from likely.models.energy.harmonium.machine import hidden_logits, sample_hidden, visible_natural
from look import MUTED, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "rbm_filters.png"
STOPS = (0, 1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 800)
SIDE = 8  # pixels


class Machine(NamedTuple):
    """A fitted machine, how it is called, and its figures."""

    name: str
    model: likely.Model
    active: float
    test: float


def machines(small: bool) -> list[Machine]:
    digits = likely.datasets.load("digits")
    train = digits.train[:200] if small else digits.train
    test = digits.test[:50] if small else digits.test
    common = {"n_epochs": 3 if small else 150, "n_temperatures": 100 if small else 2000, "random_state": 0}
    out = []
    for name, more in (
        ("plain", {}),
        ("held sparse", {"sparsity_target": 0.1, "sparsity_strength": 3.0}),
    )[: 1 if small else 2]:
        model = likely.RBM(10 if small else 60, schema=digits.schema, **common, **more).fit(train)
        out.append(Machine(name, model, float(model.transform(train).mean()), model.score(test)))
    return out


def chains(machine: likely.Model, rows: np.ndarray) -> np.ndarray:
    """(stops, rows, pixels) of Gibbs chains from some rows: the rows, then E[x | h] at each stop."""
    params, columns = machine.params_, machine.columns_

    @jax.jit
    def step(i: int, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        up, down = jax.random.split(jax.random.fold_in(jax.random.key(0), i))
        hidden = sample_hidden(up, hidden_logits(params, columns.statistics(x)))
        natural = visible_natural(params, hidden)
        return columns.sample(down, natural), columns.mean(natural)

    x, out = jnp.asarray(rows, jnp.float32), [np.asarray(rows)]
    for i in range(1, STOPS[-1] + 1):
        x, mean = step(i, x)
        if i in STOPS:
            out.append(np.asarray(mean))
    return np.stack(out)


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    done = machines(small)
    figure = Figure(figsize=(9.6, 5.2), dpi=130, layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1, 1.02])
    for part, machine in zip(np.atleast_1d(top.subfigures(1, len(done))), done, strict=True):
        draw_filters(part, machine)
    draw_chains(bottom, done[0].model)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_filters(part: SubFigure, machine: Machine) -> None:
    weights = np.asarray(machine.model.params_.weights)
    # the strongest first: units that do nothing come last
    weights = weights[:, np.argsort(-np.linalg.norm(weights, axis=0))]
    wide = 12
    axes = part.subplots()
    limit = np.quantile(np.abs(weights), 0.99)
    axes.imshow(sheet(weights.T, wide), cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
    blank(axes)
    title = f"{machine.name}: {100 * machine.active:.0f}% of units on, {machine.test:.1f} nats a test row"
    axes.set_title(title.replace("-", "−"), loc="left", fontweight="bold", fontsize=10)


def draw_chains(part: SubFigure, model: likely.Model) -> None:
    rows = likely.datasets.load("digits").test[[0, 1, 4, 7]]
    axes = part.subplots()
    states = chains(model, rows).swapaxes(0, 1).reshape(-1, SIDE * SIDE)
    axes.imshow(sheet(states, len(STOPS), gap=2), cmap="Greys", vmin=0, vmax=1.1, interpolation="nearest")
    blank(axes)
    centres = [place * (SIDE + 2) + 2 + (SIDE - 1) / 2 for place in range(len(STOPS))]
    axes.set_xticks(centres, ["row", *map(str, STOPS[1:])], color=MUTED, fontsize=9)
    axes.tick_params(length=0, labeltop=True, labelbottom=False)
    axes.set_title(
        "Gibbs chains of the plain one from test rows: what it expects after so many steps",
        loc="left",
        fontweight="bold",
        fontsize=10,
    )


def sheet(pictures: np.ndarray, wide: int, gap: int = 1) -> np.ndarray:
    """Pictures (n, pixels) side by side, gaps between them empty."""
    high = -(-len(pictures) // wide)
    out = np.full((high * (SIDE + gap) + gap, wide * (SIDE + gap) + gap), np.nan)
    for i, picture in enumerate(pictures):
        row, column = (gap + (SIDE + gap) * place for place in divmod(i, wide))
        out[row : row + SIDE, column : column + SIDE] = picture.reshape(SIDE, SIDE)
    return out


def blank(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)


if __name__ == "__main__":
    main()
