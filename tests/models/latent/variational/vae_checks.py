"""Checks of Monte Carlo answers against exact ones, shared by tests and controls."""

from __future__ import annotations

import numpy as np


def check_evidence_by_quadrature(evidence, exact):
    """Values are within their error of the exact ones, never far above, and the mean within its own."""
    assert evidence.kind == "lower"
    error = np.maximum(evidence.stderr, 1e-9)
    # the standard error comes from 16 groups, so its ratio is a t variate of 15 degrees: 8 is beyond 1e-6
    assert (np.abs(evidence.values - exact) < 8 * error).all()
    assert abs(evidence.mean - exact.mean()) < 8 * max(evidence.monte_carlo_stderr, 1e-9)
    assert error.max() < 0.5  # a check that any answer passes is none


def check_conditional_mean(mean, expected, rows):
    """Self-normalised averages over 2000 samples are right to a few times the error that their weights allow."""
    holes = np.isnan(rows)
    difference = np.asarray(mean)[holes] - expected[holes]
    # cells are in [0, 1], so a standard deviation is at most 1/2; q fits well enough for 2000 samples to be worth 500
    assert np.abs(difference).max() < 6 * 0.5 / np.sqrt(500)
    assert np.sqrt(np.mean(difference**2)) < 2 * 0.5 / np.sqrt(500)
