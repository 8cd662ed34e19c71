"""What the evidence lower bound of some autoencoders loses on digits, and to what: bars of `likely.evidence_gap`."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

import likely
from look import GRID, MUTED, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "evidence_gap.png"
APPROXIMATION, AMORTISATION = "#0072b2", "#e69f00"  # Okabe and Ito's
MODELS = {
    "diagonal q": {},
    "full q": {"posterior": "full"},
    "diagonal q, trained\nwith 8 importance samples": {"n_importance_train": 8},
}


def gaps(small: bool) -> dict[str, likely.models.latent.diagnosis.evidence_gap.EvidenceGap]:
    digits = likely.datasets.load("digits")
    size = {"hidden": (16,), "n_epochs": 2} if small else {"hidden": (200, 200), "n_epochs": 100}
    effort = {"n_refine": 5, "n_temperatures": 5, "n_chains": 4, "n_leapfrog": 2} if small else {}
    n_rows, names = (20, list(MODELS)[:1]) if small else (100, list(MODELS))
    out = {}
    for name in names:
        model = likely.VAE(8, **size, **MODELS[name], random_state=0).fit(digits.train)
        with warnings.catch_warnings():
            if small:  # whose errors are as large as its gaps
                warnings.simplefilter("ignore", likely.EvidenceWarning)
            out[name] = likely.evidence_gap(model, digits.test[:n_rows], **effort)
        print(f"{name!r}: {out[name]}")
    return out


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    found = gaps(small)
    figure = Figure(figsize=(8.6, 3.4), dpi=80 if small else 120, layout="constrained")
    panel = figure.subplots()
    for place, gap in enumerate(found.values()):
        first, second = gap.approximation.mean(), gap.amortisation.mean()
        panel.barh(
            place, first, color=APPROXIMATION, height=0.6, label="" if place else "no q of its family does better"
        )
        panel.barh(
            place, second, left=first, color=AMORTISATION, height=0.6, label="" if place else "its network misses"
        )
        note = f"  {first + second:.2f} nats;  log p ≈ {gap.evidence.mean():.2f}"
        panel.annotate(note, (first + second, place), va="center", color=MUTED, fontsize=9)
    panel.set_yticks(range(len(found)), list(found))
    panel.invert_yaxis()
    panel.set_xlim(0, 1.45 * max((gap.evidence - gap.elbo).mean() for gap in found.values()))
    panel.set_xlabel("log p(x) − evidence lower bound, nats a row", color=MUTED)
    panel.set_title("What the bound of an autoencoder loses", loc="left", fontweight="bold")
    panel.grid(axis="x", color=GRID, linewidth=0.7)
    panel.set_axisbelow(True)
    panel.tick_params(length=0)
    panel.legend(frameon=False, loc="upper right", fontsize=9)
    for side in panel.spines.values():
        side.set_visible(False)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


if __name__ == "__main__":
    main()
