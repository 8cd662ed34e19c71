"""Does each factor of the data have a code of its own? Two answers, for any codes of rows whose factors are known.

Mutual information gap: Chen, Li, Grosse and Duvenaud (2018). The classifier's score: Higgins et al. (2017).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.information.dependence import entropy


def mutual_information_gap(codes: Any, factors: Any, n_bins: int = 20) -> float:
    """How much more the best code of a factor says of it than the second best, as a share of the factor's entropy.

    Parameters
    ----------
    codes : (n, k) real numbers, as `transform` gives them.
    factors : (n, f) whole numbers.
    n_bins : equal parts into which a code's range is cut.

    Returns
    -------
    The mean over the factors: 1 if each is told by one code alone, 0 if two codes tell equally much.

    Examples
    --------
    >>> factors = np.stack(np.meshgrid(range(4), range(5)), axis=-1).reshape(-1, 2)
    >>> round(mutual_information_gap(factors.astype(float), factors), 2)
    1.0
    >>> mixed = factors @ np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> round(mutual_information_gap(mixed, factors), 2)
    0.0
    """
    codes, factors = _checked(codes, factors)
    if codes.shape[1] < 2:
        raise ValueError(f"a gap needs at least two codes, got {codes.shape[1]}.")
    binned = np.stack([_binned(code, n_bins) for code in codes.T], axis=1)
    gaps = []
    for factor in factors.T:
        uncertainty = _entropy(factor)
        if uncertainty == 0:
            continue  # A factor that never changes is nobody's.
        told = np.sort([_entropy(code) + uncertainty - _entropy(_pairs(code, factor)) for code in binned.T])
        gaps.append((told[-1] - told[-2]) / uncertainty)
    if not gaps:
        raise ValueError("no factor ever changes.")
    return float(np.mean(gaps))


def beta_vae_score(
    codes: Any, factors: Any, *, n_points: int = 1000, n_pairs: int = 32, random_state: int | None = None
) -> float:
    """How well a linear classifier tells which factor some pairs of rows share.

    A point for the classifier is the mean of |code - code'| over pairs of rows that share one factor, all else drawn;
    a code of that factor alone does not differ there.

    Parameters
    ----------
    codes, factors : as for `mutual_information_gap`.
    n_points : of the classifier, half of them to learn from. n_pairs : behind each point.
    random_state : seed.

    Returns
    -------
    Share of points that are told right; one over the number of factors is chance.
    """
    from sklearn.linear_model import LogisticRegression

    codes, factors = _checked(codes, factors)
    rng = np.random.default_rng(random_state)
    codes = codes / np.maximum(codes.std(axis=0), 1e-12)
    shared = rng.integers(factors.shape[1], size=n_points)
    points = np.stack([_difference(rng, codes, factors[:, which], n_pairs) for which in shared])
    half = n_points // 2
    classifier = LogisticRegression(max_iter=2000, C=100.0).fit(points[:half], shared[:half])
    return float(classifier.score(points[half:], shared[half:]))


def _difference(rng: np.random.Generator, codes: np.ndarray, factor: np.ndarray, n_pairs: int) -> np.ndarray:
    first = rng.integers(len(codes), size=n_pairs)
    order = np.argsort(factor, kind="stable")
    begin = np.searchsorted(factor[order], factor[first], side="left")
    end = np.searchsorted(factor[order], factor[first], side="right")
    second = order[rng.integers(begin, end)]
    return np.abs(codes[first] - codes[second]).mean(axis=0)


def _checked(codes: Any, factors: Any) -> tuple[np.ndarray, np.ndarray]:
    codes, factors = np.asarray(codes, dtype=np.float64), np.asarray(factors)
    if codes.ndim != 2 or factors.ndim != 2 or len(codes) != len(factors):
        raise ValueError(
            f"codes (n, k) and factors (n, f) must have one row each for the same rows, got {codes.shape} and "
            f"{factors.shape}."
        )
    return codes, np.stack([np.unique(factor, return_inverse=True)[1] for factor in factors.T], axis=1)


def _binned(code: np.ndarray, n_bins: int) -> np.ndarray:
    edges = np.linspace(code.min(), code.max(), n_bins + 1)[1:-1]
    return np.digitize(code, edges)


def _pairs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return one * (other.max() + 1) + other


def _entropy(values: np.ndarray) -> float:
    return entropy(np.unique(values, return_counts=True)[1])
