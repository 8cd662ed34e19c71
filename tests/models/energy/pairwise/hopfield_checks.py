"""What tests of associative memory and their negative controls share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Four letters on 5 × 5 units, as in the notes' experiment with 25 units.
LETTERS = {
    "D": ("####.", ".#..#", ".#..#", ".#..#", "####."),
    "J": ("#####", "...#.", "...#.", "#..#.", ".##.."),
    "C": (".####", "#....", "#....", "#....", ".####"),
    "M": ("#...#", "##.##", "#.#.#", "#...#", "#...#"),
}


def letters() -> np.ndarray:
    """(4, 25) patterns of ±1."""
    return np.array([[1.0 if cell == "#" else -1.0 for row in rows for cell in row] for rows in LETTERS.values()])


def random_patterns(seed: int, n_patterns: int, n_units: int) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random((n_patterns, n_units)) < 0.5, 1.0, -1.0)


def check_never_rises(trajectory: np.ndarray, energy: Callable[[np.ndarray], np.ndarray]) -> None:
    """The energies of states (sweeps, n, N) never go up, beyond rounding."""
    energies = np.array([energy(states) for states in trajectory])
    rise = np.diff(energies, axis=0).max(initial=0.0)
    assert rise < 1e-9 * (1 + np.abs(energies).max()), f"the energy rose by {rise}"


def check_fixed(states: np.ndarray, field: Callable[[np.ndarray], np.ndarray]) -> None:
    """Every unit has the sign of its field, +1 where that is 0."""
    fields = field(states)
    wrong = np.where(fields >= -1e-9, 1, -1) != states
    assert not (wrong & (np.abs(fields) > 1e-9)).any()


def check_recall(recalled: np.ndarray, patterns: np.ndarray, share: float) -> None:
    """At least that share of the rows is recalled without a fault."""
    found = (recalled == patterns).all(axis=1).mean()
    assert found >= share, f"only {found:.2f} recalled"
