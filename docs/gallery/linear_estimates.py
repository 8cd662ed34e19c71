"""Bias, variance and mean squared error of the weights of a linear regression, by simulation, as the prior grows.

Notes, Eq. 5.20-5.54: the error of an estimate is its squared bias and its variance. Maximum likelihood has no bias and
all of the variance; the mode with too strong a prior the reverse; a prior by the evidence finds its own way.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import TYPE, dress

OUT = Path(__file__).resolve().parent.parent / "images" / "linear_estimates.png"
BIAS, VARIANCE, ERROR, BAYES = "#0072b2", "#d55e00", "#000000", "#009e73"  # Okabe and Ito's
N_ROWS, N_COLUMNS = 30, 10


def simulated(small: bool) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Precisions, and of each method (n_fits, n_columns) estimates less the truth."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_COLUMNS)) @ (np.eye(N_COLUMNS) + 0.7)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    truth = 0.5 * rng.normal(size=N_COLUMNS)
    precisions = np.logspace(-1, 3, 3 if small else 17)
    schema = likely.Schema.real(N_COLUMNS)
    names = {"ml": ("ml", None), "bayes": ("bayes", None)} | {f"map {p:g}": ("map", p) for p in precisions}
    found: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for _ in range(10 if small else 400):
        y = X @ truth + 2 * rng.normal(size=N_ROWS)
        for name, (method, precision) in names.items():
            model = likely.LinearPredictor(method, precision=precision, schema=schema)
            found[name].append(model.fit(X, y).coef_ - truth)
    return precisions, {name: np.array(errors) for name, errors in found.items()}


def parts(errors: np.ndarray) -> tuple[float, float, float]:
    """Squared bias, variance and mean squared error, each summed over the weights."""
    return (
        float((errors.mean(axis=0) ** 2).sum()),
        float(errors.var(axis=0).sum()),
        float((errors**2).mean(axis=0).sum()),
    )


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    precisions, errors = simulated(small)
    figure = Figure(figsize=(7.2, 4.2), dpi=130, layout="constrained")
    draw(figure.subplots(), precisions, errors)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(axes: Axes, precisions: np.ndarray, errors: dict[str, np.ndarray]) -> None:
    modes = np.array([parts(errors[f"map {p:g}"]) for p in precisions])
    for place, (label, colour) in enumerate((("bias²", BIAS), ("variance", VARIANCE), ("mean squared error", ERROR))):
        axes.plot(precisions, modes[:, place], color=colour, linewidth=1.8, label=f"mode: {label}")
    for name, label, colour, style in (
        ("ml", "maximum likelihood", VARIANCE, ":"),
        ("bayes", "posterior mean, precision by evidence", BAYES, "--"),
    ):
        axes.axhline(parts(errors[name])[2], color=colour, linestyle=style, label=f"error, {label}")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    dress(axes, "What a prior costs and buys", "precision of the prior", "summed over the weights")


if __name__ == "__main__":
    main()
