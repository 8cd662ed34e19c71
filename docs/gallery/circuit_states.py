"""Evidence of a circuit against the states of its latents: of one tree and of several, beside a mixture's."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import likely
from look import TYPE, dress

OUT = Path(__file__).resolve().parents[1] / "images" / "circuit_states.png"
TREES = {1: "#56b4e9", 4: "#0072b2"}


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    digits = likely.datasets.load("digits")
    sizes = [1, 2] if small else [1, 2, 4, 8, 16, 32, 64]
    rows = slice(150 if small else None)
    train, valid, test = digits.train[rows], digits.valid[rows], digits.test
    figure = Figure(figsize=(6.4, 4), dpi=70 if small else 100, layout="constrained")
    axes = figure.subplots()
    mixtures = [likely.Mixture(k, n_init=1, random_state=0).fit(train).score(test) for k in sizes]
    axes.plot(sizes, mixtures, "s--", color="#999999", ms=4, label="mixture of as many components, test rows")
    for n_trees, colour in TREES.items():
        found = np.empty((2, len(sizes)))
        for place, k in enumerate(sizes):
            about = {"n_trees": n_trees, "pseudo_count": 0.3, "random_state": 0}
            circuit = likely.Circuit(k, n_epochs=2 if small else None, **about).fit(train, valid=valid)
            found[:, place] = circuit.score(train), circuit.score(test)
        name = "one tree" if n_trees == 1 else f"{n_trees} trees averaged"
        axes.plot(sizes, found[0], ":", color=colour, label=f"{name}, training rows")
        axes.plot(sizes, found[1], "o-", color=colour, ms=4, label=f"{name}, test rows")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(k) for k in sizes])
    dress(axes, "A circuit of digits", "states of each latent", "mean log p, nats")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


if __name__ == "__main__":
    main()
