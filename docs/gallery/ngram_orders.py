"""Perplexity of WikiText-2's test text against the order of n-grams, for each smoothing."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

import likely
from likely.datasets import CONVENTION, Corpus, TextDataset
from likely.models.language.ngram.ngram import SMOOTHINGS
from look import GRID, MUTED, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "ngram_orders.png"
# Okabe and Ito's
COLOURS = {
    "add_k": "#e69f00",
    "witten_bell": "#cc79a7",
    "absolute_discounting": "#009e73",
    "katz": "#56b4e9",
    "kneser_ney": "#d55e00",
    "modified_kneser_ney": "#0072b2",
}
ORDERS = (1, 2, 3, 4, 5)


def text(small: bool) -> TextDataset:
    if not small:
        return likely.datasets.load("wikitext2")
    lines = ["the dog ran away", "the cat saw a dog", "a dog sleeps", "the cat sleeps"] * 10
    return TextDataset(Corpus(lines), Corpus(lines), Corpus(["the dog saw a cat", "a cat ran"]), "little")


def perplexities(small: bool) -> dict[str, list[float]]:
    data = text(small)
    vocabulary = data.train.vocabulary()
    train, test = (part.encode(vocabulary) for part in (data.train, data.test))
    from likely.models.language.ngram.counts import count_ngrams
    from likely.models.language.ngram.smoothing import estimate
    from likely.models.language.ngram.tables import score_tokens

    out: dict[str, list[float]] = {name: [] for name in COLOURS}
    for order in ORDERS[:2] if small else ORDERS:
        counts = count_ngrams(train, order)
        for name, values in out.items():
            tables, _ = estimate(counts, name, k=0.01)
            values.append(math.exp(-score_tokens(tables, test).mean()))
    return out


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    done = perplexities(small)
    figure = Figure(figsize=(7.6, 4.6), dpi=130, layout="constrained")
    axes = figure.subplots()
    ends = _spread({name: values[-1] for name, values in done.items()}, 1.075)
    for name, values in done.items():
        orders = ORDERS[: len(values)]
        axes.plot(orders, values, color=COLOURS[name], linewidth=1.8, marker="o", markersize=4)
        if name == "add_k" and not small:  # beyond the picture: what it does is said in words
            label, place = f"add-0.01: {values[2]:,.0f} at order 3, {values[-1]:,.0f} at 5", (2.3, 850)
        else:
            label, place = (
                f"{SMOOTHINGS[name].replace('add-k', 'add-0.01')}  {values[-1]:,.0f}",
                (orders[-1], ends[name]),
            )
        axes.annotate(label, place, (10, 0), textcoords="offset points", va="center", color=COLOURS[name])
    axes.set_yscale("log")
    if not small:
        ticks = [200, 300, 500, 1000]
        axes.set_ylim(200, 1150)
        axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(0.85, ORDERS[-1] + 2.1)
    axes.set_xticks(ORDERS)
    axes.set_xlabel("order", color=MUTED)
    axes.set_ylabel("test perplexity", color=MUTED)
    axes.set_title(f"n-grams of WikiText-2, {CONVENTION}", loc="left")
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=MUTED, length=0)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def _spread(values: dict[str, float], factor: float) -> dict[str, float]:
    """Where labels stand: at their values, but no two closer than a factor."""
    out: dict[str, float] = {}
    last = 0.0
    for name in sorted(values, key=lambda name: values[name]):
        last = out[name] = max(values[name], last * factor)
    return out


if __name__ == "__main__":
    main()
