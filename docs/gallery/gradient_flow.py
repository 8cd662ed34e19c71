"""What is left of a gradient after some steps back through a recurrent cell: it vanishes, holds, or explodes."""

from __future__ import annotations

from pathlib import Path

import equinox as eqx
import jax
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from likely.models.language.recurrent.gradient_flow import flow_of
from likely.nets.recurrent import Cell
from look import MUTED, TYPE, strip

OUT = Path(__file__).resolve().parent.parent / "images" / "gradient_flow.png"
CURVES = (  # kind, size of the recurrent weights, bias of the forget gate, colour, name
    ("rnn", 0.9, None, "#56b4e9", "simple, spectral radius 0.9"),
    ("rnn", 1.0, None, "#0072b2", "simple, orthogonal"),
    ("rnn", 1.6, None, "#d55e00", "simple, spectral radius 1.6"),
    ("lstm", 1.0, 1.0, "#e69f00", "LSTM, forget gates open"),
    ("gru", 1.0, None, "#009e73", "GRU"),
)


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    n_steps, size = (10, 4) if small else (60, 32)
    inputs = 0.1 * jax.random.normal(jax.random.key(1), (n_steps, 8))
    figure = Figure(figsize=(8.6, 4.2), dpi=80 if small else 120, layout="constrained")
    panel = figure.subplots()
    for kind, scale, forget, colour, name in CURVES[:1] if small else CURVES:
        cell = Cell(jax.random.key(0), 8, size, kind=kind)
        cell = eqx.tree_at(lambda c: c.across, cell, scale * cell.across)
        if forget is not None:
            cell = eqx.tree_at(lambda c: c.bias, cell, cell.bias.at[size : 2 * size].set(forget))
        flow = flow_of(cell, inputs)
        panel.plot(np.arange(1, n_steps + 1), flow.norms, color=colour, linewidth=1.8)
        end = (n_steps, float(flow.norms[-1]))
        panel.annotate(name, end, (6, 0), textcoords="offset points", va="center", color=colour, fontsize=9)
    panel.axhline(1, color=MUTED, linewidth=0.8, linestyle=":")
    panel.set_yscale("log")
    panel.set_xlim(0, 1.42 * n_steps)
    panel.set_xticks(range(0, n_steps + 1, max(1, n_steps // 6)))
    panel.set_xlabel("steps back", color=MUTED)
    panel.set_ylabel("largest singular value of ∂s(T)/∂s(T − d)", color=MUTED)
    panel.set_title("Gradients through time", loc="left", fontweight="bold")
    strip(panel)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


if __name__ == "__main__":
    main()
