"""The law of y given a row as a weighted sum of members: p(y | x) = Σ_s w_s Π_t p_s(y_t | x).

A member is a draw of the weights, a network of an ensemble, a completion of a row with holes, or a point of a
quadrature; a predictor without any of these has one. Given the member, the columns of y are independent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import numpy as np
from scipy.special import gammaln, logsumexp

from likely.columns import Columns
from likely.contract.conditional import ConditionalParts
from likely.contract.evidence import Evidence
from likely.runtime import generator

_HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True)
class Laws:
    """The laws of y for n rows, each with s members, in standard units.

    Parameters
    ----------
    columns : of the target.
    parts : of each of its columns: (n, s, K) log probabilities of its categories, a binary one's of 0 and 1; (n, s)
        logarithms of a count's rate; (n, s, 3) location, scale and degrees of freedom, inf for a Gaussian, of a number.
    log_weights : (s,) or (n, s) logarithms of the members' weights, which sum to one.
    replicates : (s,) which of several equally good versions each member belongs to, where members are draws; else None.
    is_exact : the members are the model itself, and no approximation of it.
    is_lower : they are fair draws of it, so that the logarithm of their average is a lower bound in expectation.
    """

    columns: Columns
    parts: tuple[np.ndarray, ...]
    log_weights: np.ndarray
    replicates: np.ndarray | None = None
    is_exact: bool = True
    is_lower: bool = False

    @classmethod
    def single(cls, columns: Columns, *parts: np.ndarray) -> Laws:
        """One member a row; the parts without the members' axis."""
        return cls(columns, tuple(part[:, None] for part in parts), np.zeros(1))

    def __len__(self) -> int:
        return len(self.parts[0])

    def by_member(self, targets: np.ndarray) -> np.ndarray:
        """(n, s) log p_s(y | x) of the observed cells of y."""
        total = np.zeros(self.parts[0].shape[:2])
        for place, part in enumerate(self.parts):
            y = targets[:, place].astype(np.float64)
            seen = ~np.isnan(y)
            terms = _log_density(self.columns.kinds[place], np.where(seen, y, 0.0), part)
            total += np.where(seen[:, None], terms, 0.0)
        return total

    def log_prob(self, targets: np.ndarray) -> np.ndarray:
        """(n,) log p(y | x)."""
        return logsumexp(self.by_member(targets) + self.log_weights, axis=1)

    def evidence(self, targets: np.ndarray, method: str) -> Evidence:
        """The same, typed: exact where the members are the model itself, else an estimate with what error is known."""
        members = self.by_member(targets) + self.log_weights
        values = logsumexp(members, axis=1)
        if self.is_exact:
            return Evidence.exact(values, method=method)
        make = Evidence.lower_bound if self.is_lower else Evidence.estimate
        return make(values, replicates=self._versions(members), method=method)

    def _versions(self, members: np.ndarray) -> np.ndarray | None:
        """(n, r) log p(y | x) by each version's members alone."""
        if self.replicates is None:
            return None
        n_versions = int(self.replicates.max()) + 1
        weights = np.broadcast_to(self.log_weights, members.shape)
        own = [self.replicates == number for number in range(n_versions)]
        return np.stack([logsumexp(members[:, o], axis=1) - logsumexp(weights[:, o], axis=1) for o in own], axis=1)

    def mean(self) -> np.ndarray:
        """(n, D) expected statistics of y."""
        out = np.empty((len(self), self.columns.n_statistics))
        weights = np.broadcast_to(np.exp(self.log_weights), self.parts[0].shape[:2])
        for place, part in enumerate(self.parts):
            own = np.flatnonzero(self.columns.column_of == place)
            each = _statistics(self.columns.kinds[place], part)
            # einsum, and no product of matrices, whose rounding would depend on how many rows there are.
            out[:, own] = np.einsum("ns,nsk->nk", weights, each)
        return out

    def sample(self, key: jax.Array, n: int) -> np.ndarray:
        """(n, n_rows, n_targets) draws of y."""
        rng = generator(key)
        weights = np.broadcast_to(np.exp(self.log_weights), self.parts[0].shape[:2])
        chosen = _choose(rng, weights, n)  # (n, n_rows)
        rows = np.arange(len(self))
        draws = [_draw(rng, self.columns.kinds[place], part[rows, chosen]) for place, part in enumerate(self.parts)]
        return np.stack(draws, axis=-1)

    def conditional(self, method: str) -> ConditionalParts:
        """The same as what `condition` is made of."""
        return ConditionalParts(self.mean(), self.sample, method, self._stderr())

    def _stderr(self) -> np.ndarray | None:
        """(n, D) Monte Carlo errors of the mean statistics; 0 where nothing is known of them but that they are off."""
        if self.is_exact:
            return None
        if self.replicates is None:
            return np.zeros((len(self), self.columns.n_statistics))
        versions = [self._only(number).mean() for number in range(int(self.replicates.max()) + 1)]
        return np.std(versions, axis=0, ddof=1) / np.sqrt(len(versions))

    def _only(self, version: int) -> Laws:
        own = np.flatnonzero(self.replicates == version)
        weights = self.log_weights[..., own]
        weights = weights - logsumexp(weights, axis=-1, keepdims=True)
        return Laws(self.columns, tuple(part[:, own] for part in self.parts), weights)

    def as_members(self, replicates: np.ndarray) -> Laws:
        """The rows as members of the law of one row, equally likely; their own members go along."""
        n, s = self.parts[0].shape[:2]
        parts = tuple(part.reshape(1, n * s, *part.shape[2:]) for part in self.parts)
        weights = (np.broadcast_to(self.log_weights, (n, s)) - np.log(n)).reshape(1, n * s)
        is_lower = self.is_exact or self.is_lower
        return Laws(self.columns, parts, weights, np.repeat(replicates, s), is_exact=False, is_lower=is_lower)

    def estimated(self) -> Laws:
        """The same, typed an estimate."""
        return replace(self, is_exact=False)


def put_together(columns: Columns, laws: list[Laws], places: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    """(n, D) expected statistics and their errors, of rows that several laws are of."""
    n = sum(len(own) for own in places)
    mean, error = np.empty((n, columns.n_statistics)), np.zeros((n, columns.n_statistics))
    for law, own in zip(laws, places, strict=True):
        mean[own] = law.mean()
        found = law._stderr()
        error[own] = 0.0 if found is None else found
    return mean, None if all(law.is_exact for law in laws) else error


def _log_density(kind: str, y: np.ndarray, part: np.ndarray) -> np.ndarray:
    """(n, s) log p of each member."""
    if kind in ("binary", "categorical"):
        return np.take_along_axis(part, y.astype(np.intp)[:, None, None], axis=2)[:, :, 0]
    if kind == "count":
        return y[:, None] * part - np.exp(part) - gammaln(y + 1)[:, None]
    location, scale, freedom = np.moveaxis(part, -1, 0)
    z = (y[:, None] - location) / scale
    return _log_student(z, freedom) - np.log(scale)


def _log_student(z: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Log density of Student's t, whose limit for infinite degrees of freedom is the Gaussian's."""
    gaussian = -0.5 * z**2 - _HALF_LOG_TWO_PI
    finite = np.isfinite(freedom)
    if not finite.any():
        return gaussian
    nu = np.where(finite, freedom, 1.0)
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
    return np.where(finite, constant - 0.5 * (nu + 1) * np.log1p(z**2 / nu), gaussian)


def _statistics(kind: str, part: np.ndarray) -> np.ndarray:
    """(n, s, k) expected statistics of each member."""
    if kind == "categorical":
        return np.exp(part)
    if kind == "binary":
        return np.exp(part[..., 1:])
    if kind == "count":
        return np.exp(part)[..., None]
    location, scale, freedom = np.moveaxis(part, -1, 0)
    # The variance of Student's t; with two degrees of freedom or fewer there is none.
    finite = np.isfinite(freedom)
    nu = np.where(finite & (freedom > 2), freedom, 4.0)
    above = np.where(finite, np.where(freedom > 2, nu / (nu - 2), np.inf), 1.0)
    variance = scale**2 * above
    return np.stack([location, location**2 + variance], axis=-1)


def _choose(rng: np.random.Generator, weights: np.ndarray, n: int) -> np.ndarray:
    """(n, n_rows) members drawn by their weights."""
    if weights.shape[1] == 1:
        return np.zeros((n, len(weights)), dtype=np.intp)
    ends = np.cumsum(weights, axis=1)
    points = rng.random((n, len(weights), 1)) * ends[:, -1:]
    return np.minimum((points > ends).sum(axis=2), weights.shape[1] - 1)


def _draw(rng: np.random.Generator, kind: str, part: np.ndarray) -> np.ndarray:
    """Draws of a column; `part` has the parameters of each, (n, n_rows, ...)."""
    if kind in ("binary", "categorical"):
        ends = np.cumsum(np.exp(part), axis=-1)
        return (rng.random((*part.shape[:2], 1)) * ends[..., -1:] > ends).sum(axis=-1).astype(np.float64)
    if kind == "count":
        return rng.poisson(np.exp(np.minimum(part, 40.0))).astype(np.float64)
    location, scale, freedom = np.moveaxis(part, -1, 0)
    noise = rng.standard_normal(location.shape)
    finite = np.isfinite(freedom)
    if finite.any():
        nu = np.where(finite, freedom, 1.0)
        noise = np.where(finite, noise / np.sqrt(rng.chisquare(nu) / nu), noise)
    return location + scale * noise
