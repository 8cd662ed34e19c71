"""Shapes with known factors: what each latent of a VAE changes, for β = 1 and a larger one, and how both are judged."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import likely
from look import MUTED, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "beta_traversals.png"
BETAS = (1.0, 6.0)
VALUES = np.linspace(-2.4, 2.4, 9)


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    data = likely.datasets.load("shapes")
    size = {"hidden": (16,), "n_epochs": 2} if small else {"hidden": (256, 256), "n_epochs": 300}
    figure = Figure(figsize=(9.8, 3.9), dpi=70 if small else 110, layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, beta in zip(panels[: 1 if small else 2], BETAS, strict=False):
        model = likely.VAE(6, beta=beta, learning_rate=1e-3, weight_decay=0.0, **size, random_state=0).fit(data.train)
        codes, factors = model.transform(data.train), data.labels["train"]
        order = np.argsort(codes.std(axis=0))[::-1]  # those in use first
        moved = likely.traverse(model, data.test[:1], VALUES, components=order.tolist())
        picture = np.asarray(moved).reshape(6, len(VALUES), 16, 16).swapaxes(1, 2).reshape(6 * 16, len(VALUES) * 16)
        panel.imshow(picture, cmap="gray_r", vmin=0, vmax=1)
        panel.set_xticks([])
        panel.set_yticks(np.arange(6) * 16 + 8, [f"spread {codes[:, c].std():.1f}" for c in order])
        panel.tick_params(length=0, colors=MUTED, labelsize=8)
        wrong = float(np.mean(np.asarray(model.denoise(data.test)) != data.test))
        panel.set_title(f"β = {beta:g}", loc="left", fontweight="bold")
        panel.set_xlabel(
            f"mutual information gap {likely.mutual_information_gap(codes, factors):.2f}, β-VAE score "
            f"{likely.beta_vae_score(codes, factors, random_state=0):.2f},\n{100 * wrong:.1f}% of the pixels wrong",
            color=MUTED,
        )
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


if __name__ == "__main__":
    main()
