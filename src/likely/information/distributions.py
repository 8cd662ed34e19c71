"""Distributions that information is of: tables of probabilities, Gaussians, columns of a table, and any density.

Each knows what it is exactly: its entropy, its divergence from another of its kind, the marginals that it has. For what
has no closed form it can be drawn from and scored, and the average of draws has an error.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.information import closed_forms

if TYPE_CHECKING:
    from likely.columns import Columns

# Probabilities that are written down in float32 may miss 1 by a rounding of each; more is a mistake.
_ROUNDING = 1e-6

Axes = tuple[int, ...]


class Distribution(abc.ABC):
    """What a quantity of information can be computed of."""

    @property
    @abc.abstractmethod
    def support(self) -> str:
        """What it is a distribution over, in words: only those over the same thing are compared."""

    @abc.abstractmethod
    def log_prob(self, x: Any) -> np.ndarray:
        """(n,) log-probability or log-density of draws."""

    @abc.abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> Any:
        """N independent draws, as `log_prob` takes them."""

    def entropy(self) -> float | None:
        """In closed form; None where there is none."""
        return None

    def kl(self, other: Distribution) -> float | None:
        """KL(self‖other) in closed form; None where there is none."""
        return None

    def marginal(self, axes: Axes) -> Distribution:
        """Of some axes or columns."""
        raise TypeError(
            f"a {type(self).__name__} has no marginals in closed form: give a table of probabilities, a Gaussian, the "
            "natural parameters of columns, or a fitted model."
        )

    @property
    def n_axes(self) -> int:
        """Variables that marginals are of."""
        return 1


class Discrete(Distribution):
    """A table of probabilities, an axis for each variable.

    Parameters
    ----------
    probabilities : of any shape; at least 0, with sum 1.

    Examples
    --------
    >>> Discrete([[0.25, 0.25], [0.5, 0.0]]).marginal((0,)).probabilities
    array([0.5, 0.5])
    """

    def __init__(self, probabilities: Any):
        p = np.asarray(probabilities, dtype=np.float64)
        if p.ndim < 1 or not p.size or not np.isfinite(p).all() or (p < 0).any():
            raise ValueError(f"probabilities must be an array of numbers from 0 on, got shape {p.shape}: {p!r:.80}.")
        if abs(p.sum() - 1) > _ROUNDING:
            raise ValueError(
                f"probabilities must have sum 1, got {p.sum():g}: divide by it, or give "
                "likely.information.Counts(table) if these are counts of rows."
            )
        self.probabilities = p / p.sum()

    @property
    def support(self) -> str:
        return f"a table of {'×'.join(map(str, self.probabilities.shape))} values"

    @property
    def n_axes(self) -> int:
        return self.probabilities.ndim

    def log_prob(self, x: Any) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities.ravel()[np.asarray(x)])

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.choice(self.probabilities.size, n, p=self.probabilities.ravel())

    def entropy(self) -> float:
        return closed_forms.table_entropy(self.probabilities)

    def kl(self, other: Distribution) -> float | None:
        if not isinstance(other, Discrete):
            return None
        return closed_forms.table_kl(self.probabilities, other.probabilities)

    def marginal(self, axes: Axes) -> Discrete:
        others = tuple(axis for axis in range(self.n_axes) if axis not in axes)
        return Discrete(self.probabilities.sum(axis=others))


class Gaussian(Distribution):
    """N(mean, covariance) of a vector.

    Parameters
    ----------
    mean : (d,) or a number.
    covariance : (d, d) matrix, or (d,) variances of independent entries, or one variance for all.

    Examples
    --------
    >>> round(Gaussian([0, 0], [[1, 0.6], [0.6, 1]]).kl(Gaussian([0, 0], 1)), 4)      # -½ log(1 - 0.6²)
    0.2231
    """

    def __init__(self, mean: Any, covariance: Any):
        self.mean = np.atleast_1d(np.asarray(mean, dtype=np.float64))
        given = np.asarray(covariance, dtype=np.float64)
        self.covariance = np.full(self.mean.shape, given) if given.ndim == 0 else given
        d = len(self.mean)
        if self.mean.ndim != 1 or self.covariance.shape not in ((d,), (d, d)):
            raise ValueError(
                f"a Gaussian needs a mean (d,) and a covariance (d, d) or variances (d,), got shapes {self.mean.shape} "
                f"and {given.shape}."
            )
        if not self._is_positive():
            raise ValueError("the covariance must be symmetric and positive definite, or variances above 0.")

    def _is_positive(self) -> bool:
        if self.covariance.ndim == 1:
            return bool((self.covariance > 0).all())
        try:
            np.linalg.cholesky(self.covariance)
        except np.linalg.LinAlgError:
            return False
        return bool(np.allclose(self.covariance, self.covariance.T, rtol=1e-8))

    @property
    def support(self) -> str:
        return f"vectors of {len(self.mean)} real numbers"

    @property
    def n_axes(self) -> int:
        return len(self.mean)

    def log_prob(self, x: Any) -> np.ndarray:
        gap = np.asarray(x, dtype=np.float64).reshape(-1, len(self.mean)) - self.mean
        factor = np.linalg.cholesky(closed_forms.full(self.covariance))
        squares = np.sum(np.linalg.solve(factor, gap.T) ** 2, axis=0)
        return -0.5 * (squares + len(self.mean) * np.log(2 * np.pi) + closed_forms.log_determinant(self.covariance))

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        factor = np.linalg.cholesky(closed_forms.full(self.covariance))
        return self.mean + rng.standard_normal((n, len(self.mean))) @ factor.T

    def entropy(self) -> float:
        return closed_forms.gaussian_entropy(self.covariance)

    def kl(self, other: Distribution) -> float | None:
        if not isinstance(other, Gaussian):
            return None
        return closed_forms.gaussian_kl(self.mean, self.covariance, other.mean, other.covariance)

    def marginal(self, axes: Axes) -> Gaussian:
        own = list(axes)
        part = self.covariance[own] if self.covariance.ndim == 1 else self.covariance[np.ix_(own, own)]
        return Gaussian(self.mean[own], part)


class ColumnFamily(Distribution):
    """The columns of a table, each of its family and independent of the others.

    Parameters
    ----------
    columns : a `likely.columns.Columns`.
    eta : (D,) natural parameters, as `columns.natural` gives them.

    Examples
    --------
    >>> from likely.columns import Columns
    >>> columns = Columns(("binary", "count"), (1, 1))
    >>> p, q = (ColumnFamily(columns, eta) for eta in ([0.0, 0.0], [0.0, 1.0]))
    >>> round(p.kl(q), 4)                                                    # of the rates 1 and e: e - 2
    0.7183
    """

    def __init__(self, columns: Columns, eta: Any):
        self.columns, self.eta = columns, np.asarray(eta, dtype=np.float64)
        if self.eta.shape != (columns.n_statistics,):
            raise ValueError(
                f"`eta` must have the {columns.n_statistics} natural parameters of the columns, got shape "
                f"{self.eta.shape}."
            )

    @property
    def support(self) -> str:
        return f"rows of the columns {self.columns.kinds} with {self.columns.n_categories} categories"

    @property
    def n_axes(self) -> int:
        return self.columns.n_columns

    def log_prob(self, x: Any) -> np.ndarray:
        import jax.numpy as jnp

        return np.asarray(self.columns.log_density(jnp.asarray(x), None, jnp.asarray(self.eta)[None]), np.float64)

    def sample(self, rng: np.random.Generator, n: int) -> np.ndarray:
        import jax

        eta = np.broadcast_to(self.eta, (n, len(self.eta)))
        return np.asarray(self.columns.sample(jax.random.key(int(rng.integers(2**31))), jax.numpy.asarray(eta)))

    def entropies(self) -> np.ndarray:
        """(d,) the entropy of each column."""
        return self._each(0, self.eta)

    def divergences(self, other: ColumnFamily) -> np.ndarray:
        """(d,) KL(self‖other) of each column."""
        return self._each(1, self.eta, other.eta)

    def _each(self, which: int, *etas: np.ndarray) -> np.ndarray:
        out = np.empty(self.columns.n_columns)
        for block in self.columns.blocks:
            formula = closed_forms.FAMILIES[block.kind][which]
            out[list(block.places)] = formula(*map(block.take, etas))
        return out

    def entropy(self) -> float:
        return float(self.entropies().sum())

    def kl(self, other: Distribution) -> float | None:
        return float(self.divergences(other).sum()) if isinstance(other, ColumnFamily) else None

    def marginal(self, axes: Axes) -> ColumnFamily:
        own = sorted(axes)
        kinds, sizes = self.columns.kinds, self.columns.n_categories
        part = type(self.columns)(tuple(kinds[i] for i in own), tuple(sizes[i] for i in own))
        # Columns of one kind keep their order in a block, so that the statistics that stay keep theirs.
        return ColumnFamily(part, self.eta[np.isin(self.columns.column_of, own)])


class Density(Distribution):
    """Any distribution that can be drawn from and scored; what is asked of it is an average of draws.

    Parameters
    ----------
    log_prob : draws -> (n,) log-density.
    sample : (numpy Generator, n) -> n draws, as `log_prob` takes them.
    support : what it is over, in words.
    """

    def __init__(
        self,
        log_prob: Callable[[Any], Any],
        sample: Callable[[np.random.Generator, int], Any],
        support: str = "vectors of 1 real numbers",
    ):
        self._log_prob, self._sample, self._support = log_prob, sample, support

    @property
    def support(self) -> str:
        return self._support

    def log_prob(self, x: Any) -> np.ndarray:
        found = np.asarray(self._log_prob(x), dtype=np.float64)
        return found.reshape(len(found), -1).sum(axis=1)

    def sample(self, rng: np.random.Generator, n: int) -> Any:
        return self._sample(rng, n)


def as_distribution(p: Any) -> Distribution:
    """A distribution from what people have: one of these, a table of probabilities, or a frozen one of SciPy."""
    if isinstance(p, Distribution):
        return p
    if hasattr(p, "rvs") and hasattr(getattr(p, "dist", p), "logpdf"):
        return Density(p.logpdf, lambda rng, n: p.rvs(n, random_state=rng), _support_of(p))
    if hasattr(p, "rvs") and hasattr(p, "logpmf"):
        return Density(p.logpmf, lambda rng, n: p.rvs(n, random_state=rng), "whole numbers")
    if isinstance(p, np.ndarray | Sequence) and not isinstance(p, str):
        return Discrete(p)
    raise TypeError(
        f"information is of a table of probabilities, Counts, Samples, a Gaussian, a ColumnFamily, a Density, a frozen "
        f"distribution of SciPy or a fitted model, got {type(p).__name__}."
    )


def _support_of(p: Any) -> str:
    """Of a frozen density of SciPy: how long its vectors are."""
    return f"vectors of {int(getattr(p, 'dim', 1))} real numbers"
