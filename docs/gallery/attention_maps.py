"""Where a Seq2Seq looks when it writes: a string reversed, and dates normalised."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from likely.datasets.named.sequence_tasks import date_task, reversal_task
from look import INK, MUTED, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "attention_maps.png"
SHADES = "Blues"


def models(small: bool) -> list[tuple[likely.Seq2Seq, str]]:
    """Fitted models, each with a source that it did not see."""
    if small:
        model = likely.Seq2Seq(4, n_embedding=2, cell="rnn", bidirectional=False, n_epochs=1, random_state=0)
        model.fit(*reversal_task(20, lengths=(1, 4), letters="likey"))
        return [(model, "likely"), (model, "yek")]
    options = {"batch_size": 64, "learning_rate": 5e-3, "random_state": 0}
    reversing = likely.Seq2Seq(n_epochs=8, **options).fit(*reversal_task(10_000, lengths=(1, 12), seed=0))
    dates = likely.Seq2Seq(n_epochs=6, **options).fit(*date_task(10_000, seed=0))
    return [(reversing, "howlikely"), (dates, "Wed 3 Mar 2021"), (dates, "March 3, 2021")]


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    shown = models(small)
    figure = Figure(figsize=(12.0, 4.0), dpi=120, layout="constrained")
    for axes, (model, source) in zip(figure.subplots(1, len(shown)), shown, strict=True):
        draw(axes, model, source)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(axes: Axes, model: likely.Seq2Seq, source: str) -> None:
    (target,) = model.predict([source])
    weights = model.attention_map(source, target)
    axes.imshow(weights, cmap=SHADES, vmin=0, vmax=1, aspect="auto")
    for side, text in ((axes.xaxis, source), (axes.yaxis, target)):
        side.set_ticks(range(len(text) + 1), [*text.replace(" ", "␣"), "end"])
    axes.tick_params(colors=INK, length=0, labeltop=True, labelbottom=False, labelsize=9)
    axes.set_title(f"{source} → {target}", loc="left", fontweight="bold", pad=10)
    axes.set_xlabel("read", color=MUTED)
    axes.set_ylabel("written", color=MUTED)
    for side in axes.spines.values():
        side.set_color("#dfe4ea")


if __name__ == "__main__":
    main()
