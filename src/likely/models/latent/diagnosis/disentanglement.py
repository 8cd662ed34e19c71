"""Does each factor of the data have a code of its own? Two answers, for any codes of rows whose factors are known.

Mutual information gap: Chen, Li, Grosse and Duvenaud (2018). The classifier's score: Higgins et al. (2017). Both are
estimates from the rows given: numbers that know their standard error and which way they are biased.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from likely.contract.effort import EvidenceWarning
from likely.information.dependence import entropy

MAX_STDERR = 0.15  # of a score between 0 and 1, beyond which a warning is due


class Score(float):
    """A number between 0 and 1 with its error: used as a float, printed with `str`.

    stderr : standard error. bias : first-order bias, where it is known, to be subtracted; 0 where only its direction
    is, which `method` says. method : how it was estimated.
    """

    stderr: float
    bias: float
    method: str

    def __new__(cls, value: float, *, stderr: float, bias: float, method: str) -> Score:
        score = super().__new__(cls, value)
        score.stderr, score.bias, score.method = stderr, bias, method
        return score

    def __getnewargs_ex__(self) -> Any:
        return (float(self),), {"stderr": self.stderr, "bias": self.bias, "method": self.method}

    def __str__(self) -> str:
        bias = f", bias {self.bias:+.3f}" if self.bias else ""
        return f"{float(self):.3f} ± {self.stderr:.3f}{bias} (estimate, {self.method})"


def mutual_information_gap(codes: Any, factors: Any, n_bins: int = 20) -> Score:
    """How much more the best code of a factor says of it than the second best, as a share of the factor's entropy.

    Parameters
    ----------
    codes : (n, k) real numbers, as `transform` gives them.
    factors : (n, f) whole numbers.
    n_bins : equal parts into which a code's range is cut.

    Returns
    -------
    The mean over the factors: 1 if each is told by one code alone, 0 if two codes tell equally much. Its error is that
    of rows drawn at random, by the delta method; rows that are every combination once have none. Its bias is that of
    information read off counts, which seems larger by (cells - bins - levels + 1) / 2n than it is (Miller, 1955). Of
    codes that tell nothing the best two differ by chance, which adds to it.

    Warns
    -----
    EvidenceWarning : the standard error is above 0.15; it says how many rows would do.

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
    parts = [_gap(binned, factor) for factor in factors.T if factor.any()]  # One that never changes is nobody's.
    if not parts:
        raise ValueError("no factor ever changes.")
    gaps, influences, biases = zip(*parts, strict=True)
    stderr = float(np.mean(influences, axis=0).std() / math.sqrt(len(codes)))
    _warn_if_coarse("mutual information gap", stderr, "rows", len(codes))
    method = f"information by counts of {n_bins} bins, {len(codes)} rows"
    return Score(float(np.mean(gaps)), stderr=stderr, bias=float(np.mean(biases)), method=method)


def _gap(binned: np.ndarray, factor: np.ndarray) -> tuple[float, np.ndarray, float]:
    """A factor's gap, how each row moves it (n,), and its first-order bias."""
    n, uncertainty = len(factor), _entropy(factor)
    told = [_entropy(code) + uncertainty - _entropy(_pairs(code, factor)) for code in binned.T]
    best, second = np.argsort(told, kind="stable")[[-1, -2]]
    gap = (told[best] - told[second]) / uncertainty
    # The derivative of an entropy by a row's weight is the row's surprise, less the entropy; that of a quotient is by
    # the quotient's rule. Constants do not matter to a deviation.
    surprise = _surprise(factor)
    one, other = (_surprise(binned[:, c]) + surprise - _surprise(_pairs(binned[:, c], factor)) for c in (best, second))
    influence = (one - other - gap * surprise) / uncertainty
    # An entropy from counts is short by (K - 1) / 2n with K different values.
    short = {
        c: (_levels(binned[:, c]) + _levels(factor) - _levels(_pairs(binned[:, c], factor)) - 1) for c in (best, second)
    }
    bias = -(short[best] - short[second] - gap * (_levels(factor) - 1)) / (2 * n * uncertainty)
    return gap, influence, bias


def beta_vae_score(
    codes: Any, factors: Any, *, n_points: int = 1000, n_pairs: int = 32, random_state: int | None = None
) -> Score:
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
    Share of points that are told right; one over the number of factors is chance. Its error is that of the points that
    judge, for these rows. It is low on average: a classifier that learned from more points would do better.

    Warns
    -----
    EvidenceWarning : the standard error is above 0.15; it says how many points would do.
    """
    from sklearn.linear_model import LogisticRegression

    codes, factors = _checked(codes, factors)
    rng = np.random.default_rng(random_state)
    codes = codes / np.maximum(codes.std(axis=0), 1e-12)
    shared = rng.integers(factors.shape[1], size=n_points)
    points = np.stack([_difference(rng, codes, factors[:, which], n_pairs) for which in shared])
    half = n_points // 2
    classifier = LogisticRegression(max_iter=2000, C=100.0).fit(points[:half], shared[:half])
    score, n_judges = float(classifier.score(points[half:], shared[half:])), n_points - half
    # With two right and two wrong more, so that a score of 1 is not without error (Agresti and Coull, 1998).
    share = (score * n_judges + 2) / (n_judges + 4)
    stderr = math.sqrt(share * (1 - share) / (n_judges + 4))
    _warn_if_coarse("β-VAE score", stderr, "`n_points`", n_points)
    method = f"{n_judges} points of {n_pairs} pairs, low on average: learned from {half} points"
    return Score(score, stderr=stderr, bias=0.0, method=method)


def _warn_if_coarse(name: str, stderr: float, what: str, n: int) -> None:
    if stderr > MAX_STDERR:
        enough = math.ceil(n * (stderr / MAX_STDERR) ** 2)
        warnings.warn(
            f"the {name} has a standard error of {stderr:.2f}: raise {what} from {n} to about {enough}.",
            EvidenceWarning,
            stacklevel=3,
        )


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


def _levels(values: np.ndarray) -> int:
    return len(np.unique(values))


def _surprise(values: np.ndarray) -> np.ndarray:
    """-log of how frequent each row's value is, (n,)."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return -np.log(counts / len(values))[places]
