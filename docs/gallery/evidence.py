"""Evidence of several models on the same digits, each drawn as what it is: exact, a lower bound, or an interval.

The bounds and intervals are of one VAE and one RBM, measured with more and more effort: what changes from row to row is
how much is known, not the model.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import GRID, INK, MUTED, signed

OUT = Path(__file__).resolve().parent.parent / "images" / "evidence.png"
COLOURS = {"exact": "#0072b2", "lower": "#d55e00", "estimate": "#009e73"}  # Okabe and Ito's
HEADINGS = {
    "exact": "exact",
    "estimate": "an estimate between two limits (the bar)",
    "lower": "a lower bound: the truth lies to the right",
}


def measured(small: bool) -> list[tuple[str, likely.Evidence]]:
    """Names and evidences, top to bottom."""
    digits = likely.datasets.load("digits")
    test = digits.test[:40] if small else digits.test
    epochs = 2 if small else 200
    out = []
    for name, model in {
        "Independent": likely.Independent(),
        "Mixture, 25 components": likely.Mixture(25, max_iter=5 if small else 200, random_state=0),
        "RBM, 16 hidden units": likely.RBM(16, n_epochs=epochs, random_state=0),
    }.items():
        out.append((name, model.fit(digits.train).evidence(test)))
    machine = likely.RBM(64, n_epochs=epochs, random_state=0).fit(digits.train)
    for n in (5,) if small else (2, 10, 100):
        evidence = machine.set_params(n_temperatures=n).evidence(test)
        out.append((f"RBM, 64 hidden units, {n:,} temperatures", evidence))
    network = likely.VAE(8, hidden=(16,) if small else (200, 200), n_epochs=epochs, random_state=0).fit(digits.train)
    for n in (4,) if small else (1, 16, 256, 4096):
        name = f"VAE, 8 latents, {n:,} sample{'s' * (n > 1)} a row"
        out.append((name, network.set_params(n_importance=n).evidence(test)))
    return out


def main(small: bool = False, out: Path = OUT) -> None:
    draw(measured(small), out)


@mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 10, "text.color": INK})
def draw(entries: list[tuple[str, likely.Evidence]], out: Path) -> None:
    """A heading for each kind, and under it one line for each evidence of that kind."""
    figure = Figure(figsize=(9.6, 0.36 * len(entries) + 2.3), dpi=130, layout="constrained")
    axes = figure.subplots()
    places, names, line = [], [], 0.0
    for kind, heading in HEADINGS.items():
        axes.text(
            0.005, line, heading, transform=axes.get_yaxis_transform(), color=COLOURS[kind], va="center", weight="bold"
        )
        for name, evidence in (entry for entry in entries if entry[1].kind == kind):
            line += 1
            draw_one(axes, evidence, line)
            places.append(line)
            names.append(name)
        line += 1.4
    axes.set_yticks(places, names)
    axes.set_ylim(line - 0.7, -0.6)
    dress(axes, [evidence.mean for _, evidence in entries])
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def dress(axes: Axes, means: list[float]) -> None:
    """Room for the figures on the right, and a quiet frame."""
    low, high = min(means), max(means)
    axes.set_xlim(low - 0.06 * (high - low) - 0.5, high + 0.32 * (high - low) + 0.5)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.tick_params(axis="x", colors=MUTED)
    axes.xaxis.set_major_formatter(signed)
    axes.set_xlabel("mean log p of a test row, nats (thin line: ± standard error)", color=MUTED)
    axes.grid(axis="x", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GRID)


def draw_one(axes: Axes, evidence: likely.Evidence, place: float) -> None:
    """The mark of an evidence's kind, its error, and its figure in words."""
    colour, mean, error = COLOURS[evidence.kind], evidence.mean, evidence.mean_stderr
    axes.plot([mean - error, mean + error], [place, place], color=colour, linewidth=1.2)
    if evidence.kind == "estimate":
        limits = float(evidence.lower.mean()), float(evidence.upper.mean())
        axes.plot(limits, [place, place], color=colour, linewidth=6, alpha=0.45, solid_capstyle="butt")
        text = f"{limits[0]:.2f} to {limits[1]:.2f}"
        end = max(limits[1], mean + error)
    else:
        text = f"{'=' if evidence.kind == 'exact' else '≥'} {mean:.2f} ± {error:.2f}"
        end = mean + error
    marker = {"exact": "o", "lower": ">", "estimate": "D"}[evidence.kind]
    axes.plot(mean, place, marker=marker, markersize=7 if marker != "D" else 5.5, color=colour)
    if evidence.kind == "lower":
        axes.annotate(
            "", (end + 0.7, place), (end, place), arrowprops={"arrowstyle": "->", "color": colour, "linestyle": ":"}
        )
        end += 0.7
    axes.annotate(
        text.replace("-", "−"), (end, place), (7, 0), textcoords="offset points", va="center", fontsize=9, color=colour
    )


if __name__ == "__main__":
    main()
