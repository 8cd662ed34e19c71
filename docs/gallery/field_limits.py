"""log Z of an Ising grid as its coupling grows: strict limits on both sides, annealing between, less the exact."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import likely
from likely.models.graphs.inference.bounds import mean_field, mini_buckets
from likely.models.graphs.markov_field.gibbs import annealed_log_z
from likely.models.graphs.markov_field.partition import tree_reweighted
from look import MUTED, TYPE, dress, signed

OUT = Path(__file__).resolve().parents[2] / "docs" / "images" / "field_limits.png"
SIDE, MOST_STATES = 7, 16
COLOURS = {"tree-reweighting": "#d55e00", "mini-buckets": "#e69f00", "mean field": "#0072b2", "annealing": "#16202c"}


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    side = 3 if small else SIDE
    couplings = np.linspace(0.05, 1.0, 3 if small else 14)
    found = [limits(side, float(coupling), small) for coupling in couplings]
    figure = Figure(figsize=(8.4, 4.2), dpi=70 if small else 110, layout="constrained")
    axes = figure.subplots()
    for name, colour in COLOURS.items():
        gaps = [one[name] for one in found]
        if name == "annealing":
            errors = [2 * one["stderr"] for one in found]
            axes.errorbar(
                couplings, gaps, errors, fmt=".", color=colour, label="annealing, ± 2 standard errors", zorder=4
            )
        else:
            axes.plot(couplings, gaps, color=colour, lw=2, label=name)
    axes.axhline(0, color=MUTED, lw=1)
    axes.axvline(np.log(1 + np.sqrt(2)) / 2, color=MUTED, lw=1, ls=":")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.yaxis.set_major_formatter(signed)
    dress(axes, f"Limits of log Z of {side} × {side} spins", "coupling", "less the exact log Z, nats")
    figure.legend(frameon=False, loc="outside right upper")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def limits(side: int, coupling: float, small: bool) -> dict[str, float]:
    """Each limit less the exact log Z. Nodes have fields of their own, so that no symmetry helps."""
    rng = np.random.default_rng(0)
    grid = likely.MarkovField.ising((side, side), coupling)
    fields = [
        likely.Factor((name,), np.array([-h, h]))
        for name, h in zip(grid.graph_.nodes, rng.normal(0, 0.3, side**2), strict=True)
    ]
    pairs = [likely.Factor(edge, coupling * np.array([[1.0, -1.0], [-1.0, 1.0]])) for edge in grid.graph_.edges]
    field = likely.MarkovField.from_factors([*fields, *pairs], random_state=0)
    exact = field.log_partition().value
    factors, sizes = field._potentials.factors(), {str(v): 2 for v in range(side**2)}
    n_temperatures = 20 if small else 500
    annealed, stderr = annealed_log_z(rng, field._potentials, n_temperatures, 64)
    return {
        "tree-reweighting": tree_reweighted(field._potentials, 10 if small else 60) - exact,
        "mini-buckets": mini_buckets(factors, sizes, most=MOST_STATES) - exact,
        "mean field": mean_field(factors, sizes) - exact,
        "annealing": annealed - exact,
        "stderr": stderr,
    }


if __name__ == "__main__":
    main()
