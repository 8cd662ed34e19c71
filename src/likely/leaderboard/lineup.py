"""The line-up of a comparison when none is given: every model with a likelihood, at a size that suits the data.

The sizes are for a first look within a minute on two cores, not for records. What they follow is in the functions; they
were chosen on digits and wine, most of them by the evidence of validation rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from likely.datasets import Dataset
from likely.storage import registry


def line_up(dataset: Dataset) -> dict[str, Any]:
    """Class name -> an unfitted model for these data, the base line first; without those that take other columns."""
    binary = set(dataset.schema.kinds) == {"binary"}
    names = [entry.class_name for entry in registry.learning_from("rows") if entry.has_evidence]
    return {name: suited(name, dataset) for name in names if binary or not registry.model_class(name)._binary_only}


def suited(name: str, dataset: Dataset) -> Any:
    """A registered model with hyper-parameters for these data; its defaults where there is no rule for it."""
    entry = registry.find(name)
    rule = _RULES.get(entry.class_name)
    options = {} if rule is None else rule(len(dataset.train), dataset.schema.n_columns, set(dataset.schema.kinds))
    return registry.model_class(entry.class_name)(**options)


# Each rule takes the number of training rows, the number of columns and their kinds.


def _mixture(n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
    # About twenty rows a component: on digits and wine fewer lose, and up to there more gain.
    return {"n_components": _between(2, n_rows // 20, 50)}


def _linear(n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
    return {"n_components": _between(1, n_columns // 4, min(20, max(1, n_rows - 1)))}


def _rbm(n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
    # In four thousand steps 0.3 learns most on digits. On wine, which is real, 0.2 diverges: well below that.
    rate = 0.3 if kinds <= {"binary", "categorical"} else 0.05
    return {
        "n_components": _between(16, n_columns, 256),
        "n_epochs": _epochs(200_000, n_rows),
        "batch_size": 50,
        "learning_rate": rate,
    }


def _hopfield(n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
    # Of the memories only the dense one is a fair density of many rows. On digits 1.5 beats 1 by more than a nat.
    return {"memory": "dense", "beta": 1.5}


def _boltzmann(n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
    # A sweep of the chains goes unit by unit: for many columns the objective that needs none.
    more = {} if n_columns <= 200 else {"objective": "pseudo_likelihood", "learning_rate": 0.02}
    return {"n_epochs": _epochs(100_000, n_rows), "batch_size": 50} | more


def _dbn(n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
    # A second layer as wide as the columns can start with the first one's weights, and so with its evidence.
    width = _between(16, n_columns, 256)
    rate = {"learning_rate": 0.3} if kinds <= {"binary", "categorical"} else {}
    return {"layers": (width, width), "n_epochs": _epochs(100_000, n_rows), "batch_size": 50} | rate


def _dbm(n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
    width = _between(16, n_columns, 256)
    return {"layers": (width, width), "n_epochs": _epochs(100_000, n_rows), "batch_size": 50}


def _vae(n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
    return {"n_components": _between(2, round(n_columns**0.5), 32), "n_epochs": _epochs(100_000, n_rows)}


def _deep_latent_gaussian(n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
    width = _between(2, round(n_columns**0.5), 32)
    return {"layers": (width, max(1, width // 2)), "n_epochs": _epochs(100_000, n_rows)}


def _discrete_vae(n_rows: int, n_columns: int, kinds: set[str]) -> dict[str, Any]:
    return {"n_components": _between(4, n_columns // 2, 32), "n_epochs": _epochs(200_000, n_rows)}


def _epochs(n_visits: int, n_rows: int) -> int:
    """Passes over the rows so that each model sees about so many rows in all."""
    return _between(10, n_visits // max(1, n_rows), 200)


_RULES: dict[str, Callable[[int, int, set[str]], dict[str, Any]]] = {
    "Mixture": _mixture,
    "ProbabilisticPCA": _linear,
    "FactorAnalysis": _linear,
    "Hopfield": _hopfield,
    "BoltzmannMachine": _boltzmann,
    "RBM": _rbm,
    "DBN": _dbn,
    "DBM": _dbm,
    "VAE": _vae,
    "DiscreteVAE": _discrete_vae,
    "DeepLatentGaussian": _deep_latent_gaussian,
}


def _between(low: int, value: int, high: int) -> int:
    return max(low, min(value, high))
