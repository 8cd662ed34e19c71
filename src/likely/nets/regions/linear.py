"""Linear networks: whatever their depth one matrix, but learned along curves, mode after mode.

With white inputs and Γ = E y xᵀ, the risk of A = Q W is R = const + ‖Q W − Γ‖², so that ½ ∇_Q R = (Q W − Γ) Wᵀ and
½ ∇_W R = Qᵀ (Q W − Γ). Along the flow Q' = −½ ∇_Q R, W' = −½ ∇_W R the matrix Qᵀ Q − W Wᵀ stays what it was, and from
a start in the singular directions of Γ each strength s of a mode with singular value σ goes its own way,
s' = 2 s (σ − s): slow, then quick, the strong modes first (Saxe, McClelland and Ganguli, 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np


def collapse(layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The one layer (W, b) that linear layers (W, b), the lowest first, are together.

    >>> W, b = collapse([(np.array([[2.0]]), np.array([1.0])), (np.array([[3.0]]), np.array([-1.0]))])
    >>> W.tolist(), b.tolist()
    ([[6.0]], [2.0])
    """
    return reduce(lambda below, own: (own[0] @ below[0], own[0] @ below[1] + own[1]), layers)


def risk(Q: np.ndarray, W: np.ndarray, target: np.ndarray) -> float:
    """‖Q W − Γ‖², the risk less its constant."""
    return float(((Q @ W - target) ** 2).sum())


def half_gradients(Q: np.ndarray, W: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """½ ∇_Q R and ½ ∇_W R."""
    error = Q @ W - target
    return error @ W.T, Q.T @ error


def gradient_flow(Q: np.ndarray, W: np.ndarray, target: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q (t, m, k) and W (t, k, n) along the flow, which starts from the given ones at time 0.

    Parameters
    ----------
    Q : (m, k). W : (k, n). target : Γ, (m, n). times : rising, from 0 on.
    """
    from scipy.integrate import solve_ivp

    if Q.shape[1] != W.shape[0] or target.shape != (Q.shape[0], W.shape[1]):
        raise ValueError(f"shapes must be (m, k), (k, n) and (m, n), got {Q.shape}, {W.shape} and {target.shape}.")

    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        down = half_gradients(flat[: Q.size].reshape(Q.shape), flat[Q.size :].reshape(W.shape), target)
        return -np.concatenate([own.ravel() for own in down])

    start = np.concatenate([Q.ravel(), W.ravel()])
    path = solve_ivp(velocity, (0.0, times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-12, method="DOP853")
    if not path.success:
        raise RuntimeError(f"the flow could not be followed: {path.message}")
    return path.y[: Q.size].T.reshape(-1, *Q.shape), path.y[Q.size :].T.reshape(-1, *W.shape)


def mode_strength(singular_value: float, start: float, times: np.ndarray) -> np.ndarray:
    """s(t) = σ / (1 + (σ / s₀ − 1) e^{−2 σ t}), the strength of a mode that starts from s₀ with q = w.

    >>> mode_strength(3.0, 0.01, np.array([0.0, 0.5, 1.0, 2.0])).round(3).tolist()
    [0.01, 0.189, 1.723, 2.994]
    """
    return singular_value / (1 + (singular_value / start - 1) * np.exp(-2 * singular_value * times))
