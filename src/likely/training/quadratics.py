"""What theory says of training on a quadratic, R(θ) = ½ (θ − θ*)ᵀ H (θ − θ*), eigenvalue by eigenvalue of H.

Weight decay μ moves the minimum to λ / (λ + μ) of θ* along an eigenvector of λ; t steps of length η from 0 get to
1 − (1 − η λ)^t of it. Both are near μ⁻¹ λ and η t λ where λ is small, so that t = 1 / (η μ) steps act like that decay.
Rates are factors of the distance a step: max |1 − η λ| for gradient descent; for the heavy ball the larger root of
z² − (1 + α − η λ) z + α = 0, at best (√κ − 1) / (√κ + 1) with κ = L / μ.
"""

from __future__ import annotations

import math

import numpy as np


def decay_shrinkage(eigenvalues: np.ndarray, decay: float) -> np.ndarray:
    """λ / (λ + μ): what is left of θ* along each eigenvector under weight decay μ.

    >>> decay_shrinkage(np.array([0.1, 1.0, 10.0]), 1.0).round(3).tolist()
    [0.091, 0.5, 0.909]
    """
    return np.asarray(eigenvalues) / (np.asarray(eigenvalues) + decay)


def stopping_shrinkage(eigenvalues: np.ndarray, learning_rate: float, n_steps: int) -> np.ndarray:
    """1 − (1 − η λ)^t: how far t steps of gradient descent from 0 get along each eigenvector."""
    return 1 - (1 - learning_rate * np.asarray(eigenvalues)) ** n_steps


def matching_steps(learning_rate: float, decay: float) -> float:
    """1 / (η μ): steps after which stopping acts like weight decay μ.

    >>> matching_steps(0.01, 0.5)
    200.0
    """
    return 1 / (learning_rate * decay)


def descent_rate(smallest: float, largest: float, learning_rate: float | None = None) -> float:
    """Factor of the distance to the minimum, a step of gradient descent; by default of the best step, 2 / (μ + L).

    >>> round(descent_rate(1, 9), 3), round(descent_rate(1, 9, 1 / 9), 3)
    (0.8, 0.889)
    """
    rate = 2 / (smallest + largest) if learning_rate is None else learning_rate
    return max(abs(1 - rate * smallest), abs(1 - rate * largest))


def heavy_ball_rate(
    smallest: float, largest: float, learning_rate: float | None = None, momentum: float | None = None
) -> float:
    """Factor of the distance, a step of the heavy ball in the long run; by default at its best settings.

    >>> round(heavy_ball_rate(1, 9), 3)
    0.5
    """
    best_rate, best_momentum = heavy_ball_settings(smallest, largest)
    rate = best_rate if learning_rate is None else learning_rate
    alpha = best_momentum if momentum is None else momentum
    roots = [np.roots([1, -(1 + alpha - rate * value), alpha]) for value in (smallest, largest)]
    return float(np.abs(roots).max())


def heavy_ball_settings(smallest: float, largest: float) -> tuple[float, float]:
    """The best step and momentum on a quadratic: 4 / (√L + √μ)², ((√κ − 1) / (√κ + 1))² (Polyak, 1964)."""
    root = math.sqrt(largest / smallest)
    return 4 / (math.sqrt(largest) + math.sqrt(smallest)) ** 2, ((root - 1) / (root + 1)) ** 2


def nesterov_bound(largest: float, distance: float, n_steps: np.ndarray) -> np.ndarray:
    """2 L ‖θ₀ − θ*‖² / (t + 1)²: what is left of the risk, at most, after t steps of length 1 / L (Nesterov, 1983)."""
    return 2 * largest * distance**2 / (np.asarray(n_steps) + 1) ** 2
