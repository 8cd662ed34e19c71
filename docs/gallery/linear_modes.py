"""Two linear layers learn mode after mode: gradient flow from small weights, beside the closed form of each mode."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from likely.nets.regions import gradient_flow, mode_strength, risk
from look import INK, TYPE, dress

OUT = Path(__file__).resolve().parent.parent / "images" / "linear_modes.png"
VALUES, COLOURS = (4.0, 2.0, 1.0), ("#0072b2", "#009e73", "#d55e00")
START = 1e-3  # strength of each mode at first


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    random, times = np.random.default_rng(0), np.linspace(0, 6, 20 if small else 300)
    U, V = (np.linalg.qr(random.normal(size=(n, 3)))[0] for n in (6, 5))
    target = (U * np.array(VALUES)) @ V.T
    aligned = gradient_flow(np.sqrt(START) * U, np.sqrt(START) * V.T, target, times)
    scale = np.sqrt(START / 3)
    anyhow = gradient_flow(scale * random.normal(size=(6, 3)), scale * random.normal(size=(3, 5)), target, times)
    figure = Figure(figsize=(9.6, 3.8), dpi=60 if small else 110, layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, (value, colour) in enumerate(zip(VALUES, COLOURS, strict=True)):
        left.plot(times, strengths(U, V, *anyhow)[:, i], color=colour, linewidth=1.8, label=f"σ = {value:g}")
        left.plot(times, mode_strength(value, START, times), color=colour, linewidth=1, linestyle=(0, (4, 3)))
    left.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0.0, 0.8))
    dress(left, "Strength of each mode", "time (dashes: closed form from an aligned start)", "uᵀ Q W v")
    for flow, colour, name in ((aligned, INK, "aligned start"), (anyhow, "#cc79a7", "random start")):
        risks = [risk(Q, W, target) for Q, W in zip(*flow, strict=True)]
        right.plot(times, risks, color=colour, linewidth=1.8, label=name)
    right.legend(frameon=False, fontsize=9)
    dress(right, "The risk falls in steps, one for each mode", "time", "‖QW − Γ‖²")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def strengths(U: np.ndarray, V: np.ndarray, Q: np.ndarray, W: np.ndarray) -> np.ndarray:
    """(t, modes) u_iᵀ Q W v_i."""
    return np.einsum("mi,tmk,tkn,ni->ti", U, Q, W, V)


if __name__ == "__main__":
    main()
