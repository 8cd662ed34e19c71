"""Unobserved cells of an invertible map: drawn from a Gaussian given the observed ones, and weighed by the map's p.

The margins of a flow have no closed form. p(observed) = E_q[p(x) / q(unobserved | observed)] for any q: an unbiased
estimate, whose logarithm is a lower bound in expectation (Burda, Grosse and Salakhutdinov, 2016). q is the conditional
of the Gaussian of greatest likelihood, half of the time with twice its deviations, so that weights stay bounded where
the map's tails are a little wider.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from likely.models.latent.mixture import gaussian_block
from likely.models.latent.mixture.gaussian_block import GaussianBlock

_WIDE = 2.0  # times the deviations of the conditional, for half of the draws
_MIN_VARIANCE = 1e-6  # of a cell given the others, in standard units
LogProb = Callable[[Float[Array, "m d"]], Float[Array, " m"]]


class Proposal(NamedTuple):
    """q of each row: mean of its unobserved cells, and the Cholesky factor of their covariance, 1 elsewhere."""

    x: Float[Array, "n d"]
    observed: Bool[Array, "n d"]
    mean: Float[Array, "n d"]
    scale_tril: Float[Array, "n d d"]

    @classmethod
    def of(cls, block: GaussianBlock, x: Float[Array, "n d"], observed: Bool[Array, "n d"]) -> Proposal:
        """The conditional of a Gaussian."""
        cells, spread = gaussian_block.expected_cells(block, x, observed)
        diagonal = jax.vmap(jnp.diag)(jnp.where(observed, 1.0, _MIN_VARIANCE).astype(x.dtype))
        return cls(x, observed, cells[:, 0], jnp.linalg.cholesky(spread[:, 0] + diagonal))

    def draw(self, noise: Float[Array, "#n c k"]) -> tuple[Float[Array, "n c d"], Float[Array, "n c"]]:
        """Rows filled in from standard normal noise, whose last number says how wide, and log q of what was filled."""
        d = self.x.shape[1]
        scale = jnp.where(noise[..., d:] > 0, _WIDE, 1.0).astype(noise.dtype)
        own = scale * noise[..., :d]
        spread = jnp.broadcast_to(own, (len(self.x), *own.shape[1:]))
        filled = self.mean[:, None] + jnp.einsum("nij,ncj->nci", self.scale_tril, spread)
        rows = jnp.where(self.observed[:, None], self.x[:, None], filled)
        hidden = ~self.observed[:, None]
        # log q is that of the mixture of both widths, whichever of them a draw came from: the weight of a draw far out
        # is then bounded by the wide half.
        square, count = jnp.where(hidden, own**2, 0).sum(-1), hidden.sum(-1)
        narrow, wide = -0.5 * square, -0.5 * square / _WIDE**2 - count * math.log(_WIDE)
        diagonal = jnp.log(jnp.diagonal(self.scale_tril, axis1=1, axis2=2))
        volume = jnp.where(self.observed, 0, diagonal).sum(-1)[:, None] + 0.5 * count * math.log(2 * math.pi)
        return rows, jnp.logaddexp(narrow, wide) - math.log(2) - volume

    def weigh(
        self, log_prob: LogProb, noise: Float[Array, "#n c k"]
    ) -> tuple[Float[Array, "n c"], Float[Array, "n c d"]]:
        """Log weights of rows that are filled in, and the rows."""
        rows, log_q = self.draw(noise)
        n, c, d = rows.shape
        return log_prob(rows.reshape(n * c, d)).reshape(n, c) - log_q, rows
