"""Checks of completed rows that tests and their negative controls share: independent, and of the row alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from scipy import stats
from scipy.special import logsumexp

FALSE_ALARM = 1e-6


def all_states(n: int) -> np.ndarray:
    return np.array(list(product([0.0, 1.0], repeat=n)))


def rows_with_holes(n_columns: int) -> np.ndarray:
    """All rows that differ in the first half of their bits, the other half unobserved."""
    known = all_states(n_columns // 2)
    return np.hstack([known, np.full((len(known), n_columns - n_columns // 2), np.nan)])


def exact_means(log_weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """E[x | observed cells] of rows of bits, from the log weight of every state: plain sums."""
    states, out = all_states(rows.shape[1]), []
    for row in rows:
        agree = (states[:, ~np.isnan(row)] == row[~np.isnan(row)]).all(axis=1)
        out.append(np.exp(log_weights[agree] - logsumexp(log_weights[agree])) @ states[agree])
    return np.array(out)


def check_copies_are_independent(draws: np.ndarray, rows: np.ndarray, means: np.ndarray) -> None:
    """Over copies (n, rows, d), means of columns vary as those of independent rows do, and no two rows go together.

    The mean of a column over rows with probabilities p has the variance Σ p(1-p) / n_rows². Its estimate from n copies
    is nearly that times a chi-square over its degrees: the means are sums of bits, whose fourth moments are below a
    Gaussian's once they are added up, so that the bound is wide enough.
    """
    unknown = np.isnan(rows)
    for column in np.flatnonzero(unknown.all(axis=0)):
        cells, p = draws[:, :, column], means[:, column]
        wanted = (p * (1 - p)).sum() / len(rows) ** 2
        found = cells.mean(axis=1).var(ddof=1)
        low, high = stats.chi2.ppf([FALSE_ALARM, 1 - FALSE_ALARM], len(cells) - 1) / (len(cells) - 1)
        assert low * wanted <= found <= high * wanted, (column, found / wanted)
        error = np.sqrt(p * (1 - p) / len(cells))
        assert (np.abs(cells.mean(axis=0) - p) <= stats.norm.isf(FALSE_ALARM / len(p)) * error + 1e-3).all()
        _check_pairs(cells, p)


def _check_pairs(cells: np.ndarray, p: np.ndarray) -> None:
    scaled = (cells - p) / np.sqrt(p * (1 - p))
    together = scaled.T @ scaled / len(cells)
    pairs = together[np.triu_indices(len(p), 1)]
    # A product of two scaled bits has variance 1; far out it has a heavier tail than a Gaussian where p is near 0 or 1.
    usual = np.minimum(p, 1 - p) > 0.05
    kept = (usual[:, None] & usual[None, :])[np.triu_indices(len(p), 1)]
    assert (np.abs(pairs[kept]) <= 1.3 * stats.norm.isf(FALSE_ALARM / len(pairs)) / np.sqrt(len(cells))).all()


def check_a_row_is_drawn_alone(draw: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> None:
    """draw(rows) -> (n, rows, d): order and subset change no bit; equal rows are drawn anew, each with its own."""
    whole = draw(rows)
    order = np.random.default_rng(0).permutation(len(rows))
    np.testing.assert_array_equal(draw(rows[order]), whole[:, order])
    np.testing.assert_array_equal(draw(rows[order[:1]]), whole[:, order[:1]])
    twice = draw(np.vstack([rows, rows]))
    np.testing.assert_array_equal(twice[:, : len(rows)], whole)
    unknown = np.isnan(rows)
    assert (twice[:, len(rows) :][:, unknown] != whole[:, unknown]).any()
