"""Do two sets of rows come from one distribution? Tests with p-values, for models that can only be sampled from.

`mmd_test`: the maximum mean discrepancy with a Gaussian kernel, by permutations (Gretton et al., 2012).
`classifier_test`: whether a classifier tells held-out rows of the two apart (Lopez-Paz and Oquab, 2017).
Rows may have numbers, words, truth values, dates and unobserved cells, in arrays and in data frames.
Both are exact: where the two distributions are the same, P(p-value <= a) is a at any number of rows, up to the grain of
the permutations, and below a only where statistics tie, as they do for rows that repeat each other. Cost: O((n + m)²)
for the first, and as much again for every 30 permutations or so; a fit of the classifier for the second.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from likely.information.mixed_rows import MixedRows, read_together

_TIE_DEALS = 199  # with which `classifier_test` orders the deals of labels that have as many hits as the true one


class TwoSampleTest(NamedTuple):
    """What a test found.

    statistic : the squared discrepancy, or the held-out accuracy.
    p_value : probability of such a statistic or a greater one if both sets came from one distribution.
    method : how.
    p_stderr : Monte Carlo error of `p_value`, against that of all permutations. The test keeps its level all the same.
    level : the rate of false alarms at which `rejected` decides.
    """

    statistic: float
    p_value: float
    method: str
    p_stderr: float = 0.0
    level: float = 0.05

    @property
    def rejected(self) -> bool:
        """Whether one distribution is ruled out at the level."""
        return self.p_value <= self.level

    def __str__(self) -> str:
        verdict = "the sets differ" if self.rejected else "no difference found"
        error = f" ± {self.p_stderr:.2g}" if self.p_stderr else ""
        close = "; more permutations may decide otherwise" if abs(self.p_value - self.level) < 2 * self.p_stderr else ""
        return (
            f"{verdict} at level {self.level:g} (p = {self.p_value:.3g}{error}, statistic {self.statistic:.4g}, "
            f"{self.method}{close})"
        )


def mmd_test(
    X: Any,
    Y: Any,
    *,
    bandwidth: float | None = None,
    ranks: bool | None = None,
    n_permutations: int = 500,
    random_state: int = 0,
    level: float = 0.05,
) -> TwoSampleTest:
    """Test by the maximum mean discrepancy, MMD² = mean k(x, x') + mean k(y, y') - 2 mean k(x, y).

    Parameters
    ----------
    X, Y : (n, d) and (m, d) rows, arrays or data frames with the same columns. Numbers are divided by their deviation
        in both sets together. In ‖a - b‖² any two categories are equally far apart, as far on average as two numbers,
        and an unobserved cell is a state of its own: the kernel is a product over columns, Gaussian for numbers and of
        matches for categories.
    bandwidth : s in k(a, b) = exp(-‖a - b‖²/2s²), in units of these deviations; None takes the median distance.
    ranks : whether numbers and dates are replaced by their ranks first, which no outlier can stretch; None does so
        unless all cells are numbers and observed.
    n_permutations : the p-value is at least 1 / (n_permutations + 1).
    random_state : seed of the permutations.
    level : the rate of false alarms at which the result decides.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> same = mmd_test(rng.normal(size=(200, 2)), rng.normal(size=(200, 2)))
    >>> other = mmd_test(rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) * 1.5)
    >>> same.p_value > 0.05, other.p_value < 0.01
    (True, True)

    Words, and cells that are not observed:

    >>> here, there = [["tea", 1.0], ["tea", None]] * 20, [["tea", 1.0], ["coffee", 1.5]] * 20
    >>> mmd_test(here, there).rejected
    True
    """
    read = _pooled(X, Y)
    n = read.sizes[0]
    if n_permutations < 1:
        raise ValueError(f"`n_permutations` must be at least 1, got {n_permutations}.")
    _check_level(level)
    if bandwidth is not None and not bandwidth > 0:
        raise ValueError(f"`bandwidth` must be above 0 or None, got {bandwidth!r}.")
    plain = not read.is_category.any() and "date" not in read.kinds and not np.isnan(read.cells).any()
    rows = read.embedded(ranks=not plain if ranks is None else ranks)
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
    p_value = float(np.mean(discrepancy >= discrepancy[0] - 1e-12))
    method = f"MMD, {n_permutations} permutations"
    return TwoSampleTest(float(discrepancy[0]), p_value, method, _error_of_share(p_value, n_permutations), level)


def classifier_test(
    X: Any, Y: Any, *, classifier: Any = None, random_state: int = 0, level: float = 0.05
) -> TwoSampleTest:
    """Test by a classifier: trained on half of the rows of both sets, judged on the others.

    The p-value is exact: given what the classifier says of the held-out rows, all ways to deal out the two labels are
    equally probable if both sets come from one distribution. Deals with more hits than the true one are counted by
    Fisher's hypergeometric law. Many deals have just as many hits; with all of them counted, as Fisher does, false
    alarms would be as rare as 1% where 5% is said. They are ordered by how confident the classifier is of the labels
    dealt out, which 199 deals measure; only what ties in that as well counts in full.

    Parameters
    ----------
    X, Y : (n, d) and (m, d) rows, arrays or data frames with the same columns. The classifier is given numbers: codes
        for categories, by falling frequency, microseconds for dates, and NaN for unobserved cells (the default takes
        them).
    classifier : a scikit-learn classifier; None takes a random forest. One without `predict_proba` and
        `decision_function` has no confidence to order by, and its false alarms are fewer than the level says.
    random_state : seed of the split, of the default classifier and of the deals.
    level : the rate of false alarms at which the result decides.

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

    read = _pooled(X, Y)
    rows, n = read.for_trees(), read.sizes[0]
    _check_level(level)
    labels = np.arange(len(rows)) >= n
    if min(n, len(rows) - n) < 4:
        raise ValueError(f"a classifier needs at least 4 rows of each set, got {n} and {len(rows) - n}.")
    if classifier is None:
        classifier = RandomForestClassifier(min_samples_leaf=5, random_state=random_state)
    train, test, of_train, of_test = train_test_split(
        rows, labels, test_size=0.5, stratify=labels, random_state=random_state
    )
    judge = clone(classifier).fit(train, of_train)
    said = np.asarray(judge.predict(test), dtype=bool)
    hits = int((said & of_test).sum())
    law = hypergeom(len(test), int(of_test.sum()), int(said.sum()))
    tied = float(law.pmf(hits))
    share = _share_of_ties(np.random.default_rng(random_state), _confidence(judge, test), said, of_test)
    p_value = min(1.0, float(law.sf(hits)) + tied * share)
    error = tied * _error_of_share(share, _TIE_DEALS)
    method = f"{type(classifier).__name__} on {len(test)} rows"
    return TwoSampleTest(float((said == of_test).mean()), p_value, method, error, level)


def _confidence(judge: Any, rows: np.ndarray) -> np.ndarray:
    """(n,) how much more a classifier believes in the second label of each row; zeros where it does not say."""
    if hasattr(judge, "predict_proba"):
        return np.asarray(judge.predict_proba(rows), dtype=np.float64)[:, -1]
    if hasattr(judge, "decision_function"):
        return np.asarray(judge.decision_function(rows), dtype=np.float64).reshape(len(rows), -1)[:, -1]
    return np.zeros(len(rows))


def _share_of_ties(rng: np.random.Generator, confidence: np.ndarray, said: np.ndarray, true: np.ndarray) -> float:
    """Share of the deals with as many hits as the true one in which the labels have its confidence or more.

    Such deals keep the number of second labels among the rows that are said to have it, and among the others: labels
    change places within each of the two. The true deal counts as one of them, which makes the share exact.
    """
    dealt = np.zeros(_TIE_DEALS + 1)
    for group in (said, ~said):
        labels = np.broadcast_to(true[group], (_TIE_DEALS, int(group.sum())))
        deals = np.concatenate([true[group][None], rng.permuted(labels, axis=1)])
        dealt += deals @ confidence[group]
    # Ties are ties whatever the rounding of their sums.
    return float(np.mean(dealt >= dealt[0] - 1e-9 * max(1.0, abs(dealt[0]))))


def _error_of_share(share: float, n_draws: int) -> float:
    """Standard error of a share that `n_draws` draws estimate, one more being given.

    With one success and one failure more, so that a share that no draw reached is not without error.
    """
    share = (share * (n_draws + 1) + 1) / (n_draws + 3)
    return math.sqrt(share * (1 - share) / n_draws)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"`level` must lie between 0 and 1, got {level!r}: 0.05 is one false alarm in twenty tests.")


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


def _pooled(X: Any, Y: Any) -> MixedRows:
    """The rows of both sets."""
    read = read_together({"the rows of X": X, "the rows of Y": Y})
    if min(read.sizes) < 2:
        raise ValueError(f"both sets need at least 2 rows, got {read.sizes[0]} and {read.sizes[1]}.")
    return read
