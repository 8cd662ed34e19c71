"""A map of words: vectors learned from WikiText-2, laid out in two dimensions by t-SNE, coloured by what they mean."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.manifold import TSNE

import likely
from likely.models.language.embeddings.word_vectors import unit_rows
from look import INK

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "images" / "embedding_map.png"
GROUPS = {  # name: colour, words
    "months": ("#0072b2", "January February March April June July August September October November December"),
    "numbers": ("#56b4e9", "two three four five six seven eight nine ten twelve twenty hundred"),
    "countries": ("#009e73", "England France Germany Italy Spain Japan China India Canada Australia Ireland Scotland"),
    "family": ("#cc79a7", "father mother son daughter brother sister wife husband parents children"),
    "music": ("#d55e00", "album song guitar vocals band music songs piano drums lyrics recording concert"),
    "war": ("#e69f00", "army troops battalion infantry regiment division artillery battle attack soldiers"),
    "weather": ("#5d3fd3", "storm hurricane winds cyclone rainfall flooding tropical"),
    "ships": ("#0b6e6e", "ship ships vessel cruiser fleet naval navy"),
    "sport": ("#7f7f00", "season game team league goals coach players match championship scored"),
    "colours": ("#16202c", "white black red blue green yellow brown gray"),
}


def model(small: bool) -> likely.SkipGram:
    if small:
        words = [word for _, some in GROUPS.values() for word in some.split()]
        rng = np.random.default_rng(0)
        text = [[str(word) for word in rng.permutation(words)] for _ in range(3)]
        return likely.SkipGram("softmax", 8, n_epochs=1, min_count=1, random_state=0).fit(text)
    os.environ.setdefault("LIKELY_DATA", str(ROOT.parent / "shared" / "data"))
    return likely.SkipGram("nce", n_epochs=10, random_state=0).fit(likely.datasets.load("wikitext2").train)


@mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 9, "text.color": INK, "axes.titlesize": 11})
def main(small: bool = False, out: Path = OUT) -> None:
    fitted = model(small)
    known = set(fitted.words_)
    words = [(word, name) for name, (_, some) in GROUPS.items() for word in some.split() if word in known]
    places = layout(unit_rows(fitted.vectors([word for word, _ in words])), small)
    figure = Figure(figsize=(9.6, 6.6), dpi=120, layout="constrained")
    draw(figure.subplots(), words, places)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def layout(vectors: np.ndarray, small: bool) -> np.ndarray:
    """Places whose neighbours are those of the vectors, then moved apart until their words can be read."""
    if small:
        return vectors[:, :2]
    places = TSNE(perplexity=25, metric="cosine", init="random", random_state=0).fit_transform(vectors)
    places = (places - places.min(axis=0)) / np.ptp(places, axis=0)
    room = np.array([0.078, 0.026])  # of a word, as a share of the map
    for _ in range(400):
        apart = places[:, None] - places[None]
        share = np.maximum(0, 1 - np.abs(apart) / room)
        overlap = share.min(axis=2) * ~np.eye(len(places), dtype=bool)
        push = np.where(share[..., :1] > share[..., 1:], [[[0.0, 1.0]]], [[[1.0, 0.0]]]) * np.sign(apart)
        places = places + 0.3 * room * (overlap[..., None] * push).sum(axis=1)
    return places


def draw(axes: Axes, words: list[tuple[str, str]], places: np.ndarray) -> None:
    for (word, name), (x, y) in zip(words, places, strict=True):
        axes.text(x, y, word, color=GROUPS[name][0], fontsize=8.5, ha="center", va="center")
    for name, (colour, _) in GROUPS.items():
        own = places[[group == name for _, group in words]]
        top = own[:, 1].max()
        axes.annotate(
            name, (own[:, 0].mean(), top), (0, 11), textcoords="offset points", ha="center", color=colour, fontsize=11,
            fontweight="bold",
        )  # fmt: skip
    axes.set_xlim(places[:, 0].min() - 0.06, places[:, 0].max() + 0.06)
    axes.set_ylim(places[:, 1].min() - 0.03, places[:, 1].max() + 0.08)
    axes.set_title(
        "Words of a kind lie together, though only their neighbours were seen", loc="left", fontweight="bold"
    )
    axes.set_axis_off()


if __name__ == "__main__":
    main()
