"""The exact gradient: of Σ_z p(z; θ) f(z) over all z, or of a quadrature. The oracle of the other estimators.

Cost: f at every configuration, 2^k for k bits; at 48^k points for Gaussian noise.
"""

from __future__ import annotations

from likely.gradients.estimator import Estimator


class Enumeration(Estimator):
    """Sums over every configuration of discrete units, or over the nodes of a quadrature; no draws, no variance."""

    def surrogate(self, key, family, theta, f, n, state, context=None):
        z, weights = family.support(theta)
        return (weights * f(z)).sum(axis=0), state
