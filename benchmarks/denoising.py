"""Denoising autoencoders on grey MNIST with Gaussian noise of deviation 0.5: gain in decibels, beside PCA's.

Perceptron and convolutions, each trained with that noise on 50,000 rows and judged on the 10,000 test rows. The gain is
10 log10 of the noisy rows' squared error over the denoised ones'. PCA's projection, with the number of components that
gains most on validation rows, is what a linear map reaches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

NOISE = 0.5  # of pixels between 0 and 1
NETWORKS: dict[str, dict[str, Any]] = {
    "perceptron": {"hidden": (500,), "n_components": 100, "n_epochs": 20},
    "convolutions": {"hidden": (), "channels": (16, 32), "n_components": 100, "n_epochs": 5},
}
SMALL: dict[str, dict[str, Any]] = {"perceptron": {"hidden": (8,), "n_components": 4, "n_epochs": 1}}


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("mnist", small=small, n_small=200, binarize=None)
    rng = np.random.default_rng(seed)
    clean = {part: np.asarray(getattr(dataset, part), np.float32) for part in ("train", "valid", "test")}
    noisy = {part: rows + NOISE * rng.normal(size=rows.shape).astype(np.float32) for part, rows in clean.items()}
    linear = best_projection(clean, noisy)
    unit = float(np.sqrt(clean["train"].var(axis=0).mean()))  # what a picture's pixels are divided by
    lines, figures = [], {"noise": NOISE, "pca": linear}
    for name, options in (SMALL if small else NETWORKS).items():
        model = likely.Autoencoder(**options, noise=NOISE / unit, schema=dataset.schema, random_state=seed)
        seconds, _ = stopwatch(lambda model=model: model.fit(clean["train"]))
        gain = decibels(clean["test"], noisy["test"], model.denoise(noisy["test"]))
        figures[name] = {"options": options, "seconds": seconds, "decibels": gain}
        lines.append(
            Line(
                what=f"denoising MNIST, {name}",
                ours=f"{gain:.2f} dB",
                peer=f"{linear['decibels']:.2f} dB",
                quality=f"fit in {in_words(seconds)}; the peer is PCA, {linear['n_components']} components",
                bar="above PCA",
                reached=gain > linear["decibels"],
            )
        )
    return Outcome(lines, figures)


def best_projection(clean: dict[str, np.ndarray], noisy: dict[str, np.ndarray]) -> dict[str, float]:
    """PCA of the clean rows, with the number of components that suits the validation rows."""
    largest = min(100, len(clean["train"]) - 1)
    peer = PCA(largest, random_state=0).fit(clean["train"])

    def project(rows: np.ndarray, n: int) -> np.ndarray:
        axes = peer.components_[:n]
        return (rows - peer.mean_) @ axes.T @ axes + peer.mean_

    sizes = range(5, largest + 1, 5)
    gains = [decibels(clean["valid"], noisy["valid"], project(noisy["valid"], n)) for n in sizes]
    best = sizes[int(np.argmax(gains))]
    return {"n_components": best, "decibels": decibels(clean["test"], noisy["test"], project(noisy["test"], best))}


def decibels(clean: np.ndarray, noisy: np.ndarray, denoised: np.ndarray) -> float:
    """How much closer to the clean rows the denoised ones are than the noisy ones."""
    return float(10 * np.log10(np.mean((noisy - clean) ** 2) / np.mean((denoised - clean) ** 2)))
