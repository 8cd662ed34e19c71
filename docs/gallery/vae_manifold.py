"""Two latents for the digits: codes and decoded plane of a VAE, whole, without its KL term, and with too much of it."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import MUTED, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "vae_manifold.png"
BETAS = {"both terms": 1.0, "without the KL term": 0.0, "the KL term alone, nearly (β = 100)": 100.0}


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    digits = likely.datasets.load("digits")
    size = {"hidden": (16,), "n_epochs": 2} if small else {"hidden": (200, 200), "n_epochs": 150}
    figure = Figure(figsize=(10.2, 6.9), dpi=70 if small else 110, layout="constrained")
    panels = figure.subplots(2, 3)
    for column, (name, beta) in enumerate(list(BETAS.items())[: 1 if small else 3]):
        # no decay, which would keep even a model without the KL term in shape
        model = likely.VAE(2, beta=beta, beta_warmup=0, weight_decay=0.0, n_importance=64, **size, random_state=0)
        model.fit(digits.train)
        draw_codes(panels[0, column], model.transform(digits.test), digits.labels["test"])
        panels[0, column].set_title(name, loc="left", fontweight="bold")
        draw_plane(panels[1, column], likely.manifold(model, 10), 10)
        score = model.score(digits.test)
        panels[1, column].set_xlabel(f"evidence ≥ {score:.1f} nats", color=MUTED)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_codes(panel: Axes, codes: np.ndarray, labels: np.ndarray) -> None:
    panel.scatter(*codes.T, c=labels, cmap="tab10", s=7, linewidths=0)
    reach = max(3.0, 1.05 * float(np.abs(codes).max()))
    panel.set_xlim(-reach, reach)
    panel.set_ylim(-reach, reach)
    panel.add_patch(mpl.patches.Circle((0, 0), 2, fill=False, edgecolor=MUTED, linewidth=0.8, linestyle=":"))
    panel.set_aspect("equal")
    panel.tick_params(colors=MUTED, length=0, labelsize=8)
    for side in panel.spines.values():
        side.set_visible(False)


def draw_plane(panel: Axes, rows: np.ndarray, n: int) -> None:
    tiles = np.pad(np.asarray(rows).reshape(n, n, 8, 8), ((0, 0), (0, 0), (1, 1), (1, 1)))
    picture = tiles.swapaxes(1, 2).reshape(10 * n, 10 * n)
    panel.imshow(picture, cmap="gray_r", vmin=0, vmax=1)
    panel.set_xticks([])
    panel.set_yticks([])


if __name__ == "__main__":
    main()
