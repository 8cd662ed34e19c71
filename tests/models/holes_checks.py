"""Learning from rows with holes: what a model loses when half of the cells that it learns from are erased.

A table of known distribution, half of whose cells are erased completely at random. Each model learns from the complete
and from the erased rows with the same settings, and is asked for the mean log p of complete rows that it never saw. The
models are small enough for that to be exact, but for VAEs, whose bound by many samples is close.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import likely
from likely.storage import registry

N_TRAIN, N_TEST, ERASED = 2000, 1000, 0.5

_NETWORK = {"hidden": (32,), "n_epochs": 60, "n_importance": 500}
_MACHINE = {"n_epochs": 200, "batch_size": 50}

# Hyper-parameters for eight bits that are a mixture of four patterns, each bit wrong with probability 1/10.
BITS: dict[str, dict[str, Any]] = {
    "Independent": {},
    "Mixture": {"n_components": 4, "n_init": 4},
    "BoltzmannMachine": {"n_components": 3, **_MACHINE},
    "Hopfield": {"memory": "dense", "beta": 1.0},
    "RBM": {"n_components": 8, "learning_rate": 0.2, **_MACHINE},
    "DBN": {"layers": (8, 8), "learning_rate": 0.2, **_MACHINE},
    "DBM": {"layers": (8, 4), "learning_rate": 0.2, **_MACHINE},
    "EnergyModel": {"hidden": (32,), "n_epochs": 60, "objective": "pcd"},
    "VAE": {"n_components": 3, **_NETWORK},
    "DiscreteVAE": {"n_components": 4, **_NETWORK},
    "DeepLatentGaussian": {"layers": (3, 2), **_NETWORK},
}

# And for six real columns that two factors and noise are behind.
REALS: dict[str, dict[str, Any]] = {
    "Independent": {},
    "Mixture": {"n_components": 2, "covariance": "full"},
    "ProbabilisticPCA": {"n_components": 2},
    "FactorAnalysis": {"n_components": 2},
    "Generator": {},
    "RBM": {"n_components": 8, **_MACHINE},
    "DBN": {"layers": (8, 8), **_MACHINE},
    "DBM": {"layers": (8, 4), **_MACHINE},
    "EnergyModel": {"hidden": (32,), "n_epochs": 60},
    "VAE": {"n_components": 2, **_NETWORK},
    "DiscreteVAE": {"n_components": 4, **_NETWORK},
    "DeepLatentGaussian": {"layers": (2, 2), **_NETWORK},
}
SETTINGS = {"bits": BITS, "reals": REALS}


class Loss(NamedTuple):
    """Mean log p of complete test rows, in nats, after learning from complete rows and from erased ones."""

    complete: float
    erased: float
    base: float  # independent columns, learned from the erased rows

    @property
    def nats(self) -> float:
        return self.complete - self.erased


def nats_lost(name: str, seed: int, table: str = "bits", **changes: Any) -> Loss:
    """What a registered model loses on that table; `changes` are of its hyper-parameters."""
    train, test = rows_of(table, seed)
    holes = erased(train, seed)
    fitted = lambda name, rows, **more: _fitted(name, rows, table, seed, **more)  # noqa: E731
    scores = [fitted(name, rows, **changes).evidence(test).mean for rows in (train, holes)]
    return Loss(*map(float, scores), float(fitted("Independent", holes).evidence(test).mean))


def rows_of(table: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Complete rows to learn from and to test on."""
    rng = np.random.default_rng(seed)
    rows = (_bits if table == "bits" else _reals)(rng, N_TRAIN + N_TEST)
    return rows[:N_TRAIN], rows[N_TRAIN:]


def erased(rows: np.ndarray, seed: int) -> np.ndarray:
    """The rows with half of their cells erased, completely at random."""
    return np.where(np.random.default_rng([seed, 1]).random(rows.shape) < ERASED, np.nan, rows)


def _bits(rng: np.random.Generator, n: int) -> np.ndarray:
    # Rows of a Hadamard matrix, some columns turned round: any two patterns differ in four of the eight bits.
    patterns = np.array([[0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]])
    patterns = patterns ^ rng.integers(0, 2, 8)
    chosen = patterns[rng.integers(0, 4, n)]
    return (chosen ^ (rng.random(chosen.shape) < 0.1)).astype(np.float64)


def _reals(rng: np.random.Generator, n: int) -> np.ndarray:
    loadings = np.kron(np.eye(2), np.ones(3)) * rng.choice([-1, 1], 6)
    return rng.normal(size=(n, 2)) @ loadings + 0.5 * rng.normal(size=(n, 6))


def _fitted(name: str, rows: np.ndarray, table: str, seed: int, **changes: Any) -> likely.Model:
    make = likely.Schema.binary(rows.shape[1]) if table == "bits" else None
    parameters = SETTINGS[table].get(name, {}) | {"random_state": seed, "schema": make} | changes
    return registry.model_class(name)(**parameters).fit(rows)
