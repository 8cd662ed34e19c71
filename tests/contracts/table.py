"""The table of models that the contract is checked on: every registered model, small and quick to fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

import likely
from likely.storage import registry

# Hyper-parameters that make a model small; a model that is not named here is used with its defaults.
SMALL: dict[str, dict] = {
    "TreeMixture": {"n_components": 2, "max_iter": 10},
    "Circuit": {"n_states": 3, "n_trees": 2, "n_epochs": 3, "pseudo_count": 0.3},
    "Mixture": {"n_components": 3, "n_init": 2, "max_iter": 30},
    "ProbabilisticPCA": {"n_components": 2},
    "FactorAnalysis": {"n_components": 2, "max_iter": 50},
    "LinearAutoencoder": {"n_components": 2, "n_epochs": 5, "optimizer": "adam"},
    "Autoencoder": {"n_components": 2, "hidden": (8,), "n_epochs": 3},
    "BoltzmannMachine": {"n_components": 2, "n_epochs": 10, "n_chains": 20},
    "RBM": {"n_components": 5, "n_epochs": 3, "n_chains": 20},
    "DBN": {"layers": (5, 4), "n_epochs": 3, "n_tuning_epochs": 0, "n_chains": 20},
    "DBM": {"layers": (5, 3), "pretraining": False, "n_epochs": 3, "learning_rate": 0.2, "n_chains": 20},
    "EnergyModel": {"hidden": (16,), "n_epochs": 5, "n_temperatures": 60, "n_ais_chains": 32, "n_sweeps": 20},
    "Stack": {"models": ["Independent", "Mixture"]},
    "GAN": {"n_components": 2, "hidden": (8,), "n_epochs": 3},
    "VAE": {"n_components": 2, "hidden": (8,), "n_epochs": 3, "n_importance": 500},
    "DiscreteVAE": {"n_components": 2, "hidden": (8,), "n_epochs": 3, "learning_rate": 0.01, "n_importance": 64},
    "DeepLatentGaussian": {"layers": (2, 1), "hidden": (8,), "n_epochs": 3, "n_importance": 500},
    "SemiSupervisedVAE": {"n_components": 2, "hidden": (8,), "n_epochs": 3, "n_importance": 500},
}

# Every model of p(x), those that learn from labels besides included; `test_predictors` has those of p(y | x).
NAMES = [
    entry.class_name
    for entry in registry.learning_from("rows", "labels")
    if issubclass(registry.model_class(entry.class_name), likely.Model)
]


def small(name: str, **changes) -> likely.Model:
    """A small model of that name, with a seed."""
    parameters = {"random_state": 0} | SMALL.get(name, {}) | changes
    return registry.model_class(name)(**parameters)


def with_hook(hook: str) -> list[str]:
    """Names of the models that write a hook, such as "_evidence"."""
    return [name for name in NAMES if hook in registry.find(name).hooks]


def labels_for(name: str, X) -> np.ndarray | None:
    """What `fit` takes for y: two classes in turn and rows without a label, where the model learns from labels."""
    learns_from_labels = registry.find(name).learns_from == "labels"
    return np.arange(len(X)) % 3 - 1 if learns_from_labels else None


def is_real_only(name: str) -> bool:
    return registry.model_class(name)._real_only


def is_binary_only(name: str) -> bool:
    return registry.model_class(name)._binary_only


def binary_rows(seed: int, n: int = 120, holes: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, (n, 1))
    rows = (rng.random((n, 6)) < 0.15 + 0.7 * group).astype(np.float64)
    return with_holes(rng, rows, holes)


def real_rows(seed: int, n: int = 120, holes: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(n, 6))
    return with_holes(rng, rows * [1, 10, 0.1, 1, 5, 1] + [0, 2000, 0, -3, 0, 1], holes)


def with_holes(rng: np.random.Generator, rows: np.ndarray, share: float) -> np.ndarray:
    """Some cells unobserved, at least one cell of each row kept."""
    erased = rng.random(rows.shape) < share
    erased[np.arange(len(rows)), rng.integers(0, rows.shape[1], len(rows))] = False
    return np.where(erased, np.nan, rows)


def mixed_frame(seed: int, n: int = 120, holes: float = 0.2) -> pl.DataFrame:
    """Every kind of column, with holes."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    columns = {
        "height": rng.normal(170 + 10 * group, 5),
        "smokes": (rng.random(n) < 0.2 + 0.5 * group).astype(int),
        "city": np.array(["Ulm", "Rome", "Oslo"])[rng.integers(0, 2 + group)],
        "visits": rng.poisson(1 + 3 * group),
    }
    present = {name: rng.random(n) >= holes for name in columns}
    return pl.DataFrame(
        {
            name: [cell.item() if there else None for cell, there in zip(cells, present[name], strict=True)]
            for name, cells in columns.items()
        }
    )


def binary_frame(seed: int, n: int = 120, holes: float = 0.2) -> pl.DataFrame:
    """Three binary columns, one of them of booleans, with holes."""
    rows = binary_rows(seed, n, holes)[:, :3]
    cells = [[None if np.isnan(cell) else int(cell) for cell in column] for column in rows.T]
    return pl.DataFrame({"smokes": cells[0], "drinks": cells[1]}).with_columns(
        pl.Series("sleeps", [None if cell is None else bool(cell) for cell in cells[2]])
    )


def rows_for(name: str) -> Callable[..., np.ndarray]:
    """Rows of a kind that the model is made for."""
    return real_rows if is_real_only(name) else binary_rows
