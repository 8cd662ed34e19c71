"""Evidence of nearly dependent columns in float32, as a check: tests give the real model, controls a wrong one."""

from __future__ import annotations

import warnings

import numpy as np

from likely import EvidenceWarning
from likely.models.latent.linear.linear_gaussian import MAX_ROUNDING


def nearly_dependent(seed, noise, n=500):
    """Rows of three columns with correlation 1 - noise."""
    random = np.random.RandomState(seed)
    return np.sqrt(1 - noise) * random.normal(size=(n, 1)) + np.sqrt(noise) * random.normal(size=(n, 3))


def check_rounding(model, rows):
    """The evidence is the dense float64 density of the model's own parameters, but for the rounding of cells.

    A cell of size x is off by ε|x| at most, which moves log p by that times its slope, |Σ⁻¹(x - b)|, and in second
    order by ½ (ε|x|)²/ψ. Where that is typically more than `MAX_ROUNDING`, there is a warning.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model.score_samples(rows)
    scale, noise = model.cells_.scaling.scale, np.broadcast_to(model.noise_variance_, rows.shape[1])
    covariance = model.components_.T @ model.components_ + np.diag(noise)
    root = np.linalg.cholesky(covariance)
    centred = rows - model.mean_
    white = np.linalg.solve(root, centred.T)
    exact = -0.5 * (white**2).sum(0) - np.log(np.diag(root)).sum() - 0.5 * rows.shape[1] * np.log(2 * np.pi)
    # Cells are rounded once they are in standard units, about the columns' centres; both sides of the rounding count.
    off = np.finfo(np.float32).eps / 2 * np.abs(rows - model.cells_.scaling.invert(np.zeros(rows.shape[1])))
    slope = np.abs(np.linalg.solve(root.T, white).T)
    bound = (off * slope).sum(axis=1) + 0.5 * rows.shape[1] * (off**2 / noise).sum(axis=1)
    assert (np.abs(found - exact) <= bound + 1e-6).all()
    typical = np.finfo(np.float32).eps / 2 / np.sqrt((noise / scale**2).min())
    assert any(issubclass(w.category, EvidenceWarning) for w in caught) == (typical > MAX_ROUNDING)
    return np.abs(found - exact).max()
