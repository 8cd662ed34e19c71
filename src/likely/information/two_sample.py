"""Do two sets of rows come from one distribution? Tests with p-values, for models that can only be sampled from.

`mmd_test`: the maximum mean discrepancy with a Gaussian kernel, by permutations (Gretton et al., 2012).
`classifier_test`: whether a classifier tells held-out rows of the two apart (Lopez-Paz and Oquab, 2017).
Both are exact: where the two distributions are the same, P(p-value <= a) <= a for every a, at any number of rows. Cost:
O((n + m)²) for the first, and as much again for every 30 permutations or so; a fit of the classifier for the second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class TwoSampleTest(NamedTuple):
    """What a test found.

    statistic : the squared discrepancy, or the held-out accuracy.
    p_value : probability of such a statistic or a greater one if both sets came from one distribution.
    method : how.
    """

    statistic: float
    p_value: float
    method: str


def mmd_test(
    X: Any, Y: Any, *, bandwidth: float | None = None, n_permutations: int = 500, random_state: int = 0
) -> TwoSampleTest:
    """Test by the maximum mean discrepancy, MMD² = mean k(x, x') + mean k(y, y') - 2 mean k(x, y).

    Parameters
    ----------
    X, Y : (n, d) and (m, d) complete rows of numbers. Columns are divided by their deviation in both together.
    bandwidth : s in k(a, b) = exp(-‖a - b‖²/2s²), in units of these deviations; None takes the median distance.
    n_permutations : the p-value is at least 1 / (n_permutations + 1).
    random_state : seed of the permutations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> same = mmd_test(rng.normal(size=(200, 2)), rng.normal(size=(200, 2)))
    >>> other = mmd_test(rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) * 1.5)
    >>> same.p_value > 0.05, other.p_value < 0.01
    (True, True)
    """
    rows, n = _pooled(X, Y)
    if n_permutations < 1:
        raise ValueError(f"`n_permutations` must be at least 1, got {n_permutations}.")
    if bandwidth is not None and not bandwidth > 0:
        raise ValueError(f"`bandwidth` must be above 0 or None, got {bandwidth!r}.")
    deviation = rows.std(axis=0)
    rows = rows / np.where(deviation > 0, deviation, 1)
    norms = (rows**2).sum(axis=1)
    squares = np.maximum(norms[:, None] + norms[None, :] - 2 * rows @ rows.T, 0)
    width = np.median(squares[np.triu_indices(len(rows), 1)]) ** 0.5 if bandwidth is None else bandwidth
    kernel = np.exp(-squares / (2 * max(width, 1e-12) ** 2))
    np.fill_diagonal(kernel, 0)
    rng = np.random.default_rng(random_state)
    order = np.array([np.arange(len(rows)), *(rng.permutation(len(rows)) for _ in range(n_permutations))])
    discrepancy = _discrepancies(kernel, order, n)
    # The rows as they are count as one of the permutations, which makes the test exact. Ties are ties whatever the
    # rounding of their sums.
    p_value = np.mean(discrepancy >= discrepancy[0] - 1e-12)
    return TwoSampleTest(float(discrepancy[0]), float(p_value), f"MMD, {n_permutations} permutations")


def classifier_test(X: Any, Y: Any, *, classifier: Any = None, random_state: int = 0) -> TwoSampleTest:
    """Test by a classifier: trained on half of the rows of both sets, judged on the others.

    The p-value is Fisher's exact one: given what the classifier says of the held-out rows, all ways to deal out the
    two labels are equally probable if both sets come from one distribution.

    Parameters
    ----------
    X, Y : (n, d) and (m, d) rows of numbers; NaN cells as far as the classifier takes them (the default does).
    classifier : a scikit-learn classifier; None takes a random forest.
    random_state : seed of the split and of the default classifier.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = classifier_test(rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + [1.0, 0.0])
    >>> found.statistic > 0.6, found.p_value < 0.001
    (True, True)
    """
    from scipy.stats import hypergeom
    from sklearn.base import clone
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    rows, n = _pooled(X, Y, holes=True)
    labels = np.arange(len(rows)) >= n
    if min(n, len(rows) - n) < 4:
        raise ValueError(f"a classifier needs at least 4 rows of each set, got {n} and {len(rows) - n}.")
    if classifier is None:
        classifier = RandomForestClassifier(min_samples_leaf=5, random_state=random_state)
    train, test, of_train, of_test = train_test_split(
        rows, labels, test_size=0.5, stratify=labels, random_state=random_state
    )
    said = np.asarray(clone(classifier).fit(train, of_train).predict(test), dtype=bool)
    hits = int((said & of_test).sum())
    p_value = hypergeom.sf(hits - 1, len(test), int(of_test.sum()), int(said.sum()))
    name = type(classifier).__name__
    return TwoSampleTest(float((said == of_test).mean()), float(min(1.0, p_value)), f"{name} on {len(test)} rows")


def _discrepancies(kernel: np.ndarray, order: np.ndarray, n: int) -> np.ndarray:
    """Unbiased MMD² of each way to deal the rows out: the first n of an order are X."""
    n_rows, m = len(kernel), len(kernel) - n
    member = np.zeros((len(order), n_rows))
    np.put_along_axis(member, order[:, :n], 1.0, axis=1)
    towards = member @ kernel
    within = np.einsum("pi,pi->p", towards, member)
    across = towards.sum(axis=1) - within
    other = kernel.sum() - within - 2 * across
    return within / (n * (n - 1)) + other / (m * (m - 1)) - 2 * across / (n * m)


def _pooled(X: Any, Y: Any, *, holes: bool = False) -> tuple[np.ndarray, int]:
    """All rows in one matrix, and how many of them are X's."""
    first, second = (np.asarray(rows, dtype=np.float64) for rows in (X, Y))
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ValueError(f"both sets must be (n_rows, d) with one d, got shapes {first.shape} and {second.shape}.")
    if min(len(first), len(second)) < 2:
        raise ValueError(f"both sets need at least 2 rows, got {len(first)} and {len(second)}.")
    rows = np.concatenate([first, second])
    if not np.isfinite(rows[~np.isnan(rows)] if holes else rows).all():
        raise ValueError("rows must be finite numbers: impute NaN cells, or use classifier_test, which takes them.")
    return rows, len(first)
