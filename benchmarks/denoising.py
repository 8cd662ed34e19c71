"""Denoising autoencoders on grey MNIST with Gaussian noise of deviation 0.5: gain in decibels, beside Wiener's filter.

Perceptron and convolutions, each trained with that noise on 50,000 rows and judged on the 10,000 test rows. The gain is
10 log10 of the noisy rows' squared error over the denoised ones'. Wiener's filter, x̂ = μ + C (C + σ²I)⁻¹ (x - μ) with
mean and covariance of the training rows, is the best linear map.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

NOISE = 0.5  # of pixels between 0 and 1
NETWORKS: dict[str, dict[str, Any]] = {
    "perceptron": {"hidden": (1000,), "n_components": 200, "n_epochs": 10, "learning_rate": 1e-3},
    "convolutions": {"hidden": (), "channels": (16, 32), "n_components": 200, "n_epochs": 3, "learning_rate": 2e-3},
}
SMALL: dict[str, dict[str, Any]] = {"perceptron": {"hidden": (8,), "n_components": 4, "n_epochs": 1}}


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("mnist", small=small, n_small=200, binarize=None)
    train, test = (np.asarray(rows, np.float32) for rows in (dataset.train, dataset.test))
    noisy = test + NOISE * np.random.default_rng(seed).normal(size=test.shape).astype(np.float32)
    linear = decibels(test, noisy, wiener(train, noisy))
    unit = float(np.sqrt(train.var(axis=0).mean()))  # what a picture's pixels are divided by
    lines, figures = [], {"noise": NOISE, "wiener_decibels": linear}
    for name, options in (SMALL if small else NETWORKS).items():
        model = likely.Autoencoder(**options, noise=NOISE / unit, schema=dataset.schema, random_state=seed)
        seconds, _ = stopwatch(lambda model=model: model.fit(train))
        gain = decibels(test, noisy, model.denoise(noisy))
        figures[name] = {"options": options, "seconds": seconds, "decibels": gain}
        lines.append(
            Line(
                what=f"denoising MNIST, {name}",
                ours=f"{gain:.2f} dB",
                peer=f"{linear:.2f} dB",
                quality=f"fit in {in_words(seconds)}; the peer is the best linear map",
                bar="above the peer",
                reached=gain > linear,
            )
        )
    return Outcome(lines, figures)


def wiener(train: np.ndarray, noisy: np.ndarray) -> np.ndarray:
    """Noisy rows after the best linear map for this noise."""
    mean, covariance = train.mean(axis=0), np.cov(train.T, dtype=np.float64)
    gain = np.linalg.solve(covariance + NOISE**2 * np.eye(len(covariance)), covariance)
    return (noisy - mean) @ gain.astype(np.float32) + mean


def decibels(clean: np.ndarray, noisy: np.ndarray, denoised: np.ndarray) -> float:
    """How much closer to the clean rows the denoised ones are than the noisy ones."""
    return float(10 * np.log10(np.mean((noisy - clean) ** 2) / np.mean((denoised - clean) ** 2)))
