"""Information from rows of real numbers, by the distances to nearest neighbours; nothing is fitted.

Entropy: Kozachenko and Leonenko (1987); divergence: Wang, Kulkarni and Verdú (2009); mutual information: the first
estimator of Kraskov, Stögbauer and Grassberger (2004). All are consistent, with a bias that dies out slowly where there
are many columns, and that the standard error does not show. Errors take distances of different rows for independent,
which neighbours are not: that of an information is too small by a quarter in simulations of Gaussians.
Cost: n log n for few columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special
from scipy.spatial import cKDTree

from likely.information.distributions import Axes
from likely.information.quantity import Information


class Samples:
    """Rows of real numbers that were drawn independently from a density.

    Parameters
    ----------
    rows : (n, d), or (n,) of one number each; no two alike.
    n_neighbours : which neighbour's distance is taken: more give less variance and more bias.

    Examples
    --------
    >>> from likely import information
    >>> x = np.random.default_rng(0).standard_normal(2000)
    >>> print(information.entropy(Samples(x)))                             # ½ log 2πe = 1.419
    ≈ 1.42... ± 0.01... nats (estimate, 4 nearest neighbours of 2,000 rows, bias not known)
    """

    def __init__(self, rows: Any, n_neighbours: int = 4):
        given = np.asarray(rows, dtype=np.float64)
        self.rows = given[:, None] if given.ndim == 1 else given
        if self.rows.ndim != 2 or not np.isfinite(self.rows).all():
            raise ValueError(f"rows must be (n, d) finite numbers, got shape {given.shape}: drop rows with NaN.")
        if not 1 <= n_neighbours < len(self.rows):
            raise ValueError(f"`n_neighbours` must be from 1 to n - 1 = {len(self.rows) - 1}, got {n_neighbours}.")
        self.n_neighbours = n_neighbours

    @property
    def n_axes(self) -> int:
        """Columns."""
        return self.rows.shape[1]

    @property
    def method(self) -> str:
        """What estimates are made by."""
        return f"{self.n_neighbours} nearest neighbours of {len(self.rows):,} rows, bias not known"

    def marginal(self, axes: Axes) -> Samples:
        """Some of the columns."""
        return Samples(self.rows[:, list(axes)], self.n_neighbours)

    def distances(self) -> np.ndarray:
        """(n,) from each row to its neighbour of that rank, itself left out."""
        found = cKDTree(self.rows).query(self.rows, self.n_neighbours + 1)[0][:, -1]
        return _positive(found)


def sample_entropy(samples: Samples) -> Information:
    """H = ψ(n) - ψ(k) + log volume of the unit ball + d E log ε."""
    n, d = samples.rows.shape
    log_ball = 0.5 * d * np.log(np.pi) - special.gammaln(d / 2 + 1)
    constant = special.digamma(n) - special.digamma(samples.n_neighbours) + log_ball
    return Information.averaged(constant + d * np.log(samples.distances()), samples.method)


def sample_kl(p: Samples, q: Samples) -> Information:
    """KL(p‖q) = d E log ν/ρ + log m/(n - 1), with ρ the distance within p's rows and ν that to q's."""
    if p.n_axes != q.n_axes:
        raise ValueError(f"samples of {p.n_axes} and of {q.n_axes} columns cannot be compared.")
    k = min(p.n_neighbours, q.n_neighbours)
    p = Samples(p.rows, k)
    across = _positive(cKDTree(q.rows).query(p.rows, [k])[0][:, 0])
    terms = p.n_axes * np.log(across / p.distances()) + np.log(len(q.rows) / (len(p.rows) - 1))
    found = Information.averaged(terms, f"{k} nearest neighbours of {len(p.rows):,} and {len(q.rows):,} rows")
    # q's rows vary too: a resample of them moves each term by about as much as one of p's moves its own distance.
    spread = np.hypot(found.stderr, p.n_axes * np.sqrt(special.polygamma(1, k) / len(q.rows)))
    return Information.estimate(found.value, spread, f"{found.method}, bias not known")


def sample_information(samples: Samples, a: Axes, b: Axes) -> Information:
    """I(a; b) = ψ(k) + ψ(n) - E[ψ(n_a + 1) + ψ(n_b + 1)], n_a rows nearer in a alone than the neighbour in both."""
    one, other = samples.rows[:, list(a)], samples.rows[:, list(b)]
    n, k = len(one), samples.n_neighbours
    both = np.hstack([one, other])
    radius = _positive(cKDTree(both).query(both, k + 1, p=np.inf)[0][:, -1])
    # The rows strictly within the radius: the nearest number below it is taken, and the row itself counts as one.
    within = np.nextafter(radius, 0)
    near = [cKDTree(part).query_ball_point(part, within, p=np.inf, return_length=True) for part in (one, other)]
    terms = special.digamma(k) + special.digamma(n) - sum(special.digamma(number) for number in near)
    return Information.averaged(terms, samples.method)


def _positive(distances: np.ndarray) -> np.ndarray:
    if (distances == 0).any():
        raise ValueError(
            f"{int(np.sum(distances == 0))} rows have neighbours at distance 0: values repeat, and are no draws of a "
            "density. Count them, with likely.information.Counts.of(column, ...), or raise `n_neighbours`."
        )
    return distances
