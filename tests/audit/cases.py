"""Every registered model of tables on every kind of table that it takes: small, fitted once, and strongly coupled.

Few epochs leave a network or a machine near independent columns, where much that is wrong would not show. So their
weights are *shaken* after the fit: noise is added to whatever couples one unit with another.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import likely
from likely.schema import Schema
from likely.schema.column import Column
from likely.storage import registry
from tests.audit import tables
from tests.audit.oracles import WITHOUT, Law

# Small, with tanh between layers, as the oracles have it. A latent or two, so that quadrature can follow.
SETTINGS: dict[str, dict[str, Any]] = {
    "Autoregressive": {"conditional": "linear", "n_chains": 2, "n_importance": 2000},
    "TreeMixture": {"n_components": 2, "max_iter": 10},
    "Circuit": {"n_states": 3, "n_trees": 2, "n_epochs": 3, "pseudo_count": 0.3},
    "Mixture": {"n_components": 2, "n_init": 1, "max_iter": 20},
    "Stack": {"models": ["Independent", likely.Mixture(2, n_init=1, max_iter=20)]},
    "ProbabilisticPCA": {"n_components": 1},
    "FactorAnalysis": {"n_components": 1, "max_iter": 50},
    "Hopfield": {"memory": "pairwise", "beta": 0.03},
    "BoltzmannMachine": {"n_components": 1, "n_epochs": 2, "n_chains": 100},
    "RBM": {"n_components": 2, "n_epochs": 1, "n_chains": 100},
    "DBN": {"layers": (3, 2), "n_epochs": 1, "n_tuning_epochs": 0, "n_chains": 100, "n_importance": 500},
    "DBM": {"layers": (3, 2), "pretraining": False, "n_epochs": 1, "learning_rate": 0.1, "n_chains": 100},
    "EnergyModel": {"hidden": (6,), "activation": "tanh", "n_epochs": 1, "n_temperatures": 200, "n_sweeps": 50},
    "VAE": {"n_components": 1, "hidden": (6,), "activation": "tanh", "n_epochs": 1, "n_importance": 1000},
    "DiscreteVAE": {"n_components": 2, "hidden": (6,), "activation": "tanh", "n_epochs": 1, "n_importance": 1000},
    "DeepLatentGaussian": {"layers": (1, 1), "hidden": (6,), "activation": "tanh", "n_epochs": 1, "n_importance": 1000},
}
# The same classes with other settings, which take another way to their answers.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "Autoregressive, trees": ("Autoregressive", {"conditional": "trees", "n_trees": 2}),
    "Mixture, full": ("Mixture", {"covariance": "full"}),
    "Mixture, tied": ("Mixture", {"covariance": "tied"}),
    "Hopfield, dense": ("Hopfield", {"memory": "dense", "beta": 0.5}),
    "Generator, bent": ("Generator", {"shape": "bent"}),
}
SHAKE = 0.7
SHAKE_COUNTS = 0.3  # A machine's counts have rates that are exponentials of its weights, and soon leave the grid.
COUPLED = ("weights", "weight", "down")  # names of the arrays that couple units
LEFT = ("encoder", "up", "gaussian")  # what answers are computed with, and not what they are of


class Case(NamedTuple):
    """A model on a kind of table: `name` is the class, with the variant's name where it is one."""

    name: str
    kind: str

    @property
    def class_name(self) -> str:
        return VARIANTS[self.name][0] if self.name in VARIANTS else self.name

    def __str__(self) -> str:
        return f"{self.name}, {self.kind}"


class Fitted(NamedTuple):
    """A fitted model, the rows that it saw, and its law."""

    model: Any
    rows: np.ndarray
    law: Law


def kinds_of(class_name: str) -> tuple[str, ...]:
    cls = registry.model_class(class_name)
    return ("real",) if cls._real_only else ("binary",) if cls._binary_only else tuple(tables.KINDS)


# The rate of a count that follows a real column grows exponentially along it: its tail is beyond any grid.
BEYOND_GRIDS = {("Autoregressive", "mixed")}


def all_cases() -> list[Case]:
    """Every model with a likelihood on each kind that it takes, and the variants on theirs."""
    named = [e.class_name for e in registry.learning_from("rows") if e.class_name not in WITHOUT]
    cases = [Case(name, kind) for name in named for kind in kinds_of(name) if (name, kind) not in BEYOND_GRIDS]
    extra = {"Mixture, full": ("real", "mixed"), "Mixture, tied": ("mixed",), "Hopfield, dense": ("binary",)}
    extra["Generator, bent"] = ("real",)
    extra["Autoregressive, trees"] = ("binary", "categorical", "count")
    return cases + [Case(name, kind) for name, kinds in extra.items() for kind in kinds]


def few_cases() -> list[Case]:
    """The tables of `make test`: of one kind for every model, and mixed ones where answers are exact and quick."""
    quick = {"Independent", "Mixture, full", "RBM", "DBN", "DBM"}
    alone = [case for case in all_cases() if case.kind == "binary" or kinds_of(case.class_name) == ("real",)]
    return alone + [case for case in all_cases() if case.kind == "mixed" and case.name in quick]


def schema_of(kind: str) -> Schema:
    columns = []
    for number, column in enumerate(tables.KINDS[kind]):
        categories = tuple(range(tables.N_CATEGORIES)) if column == "categorical" else None
        columns.append(Column(f"x{number}", column, categories))
    return Schema(tuple(columns))


@functools.lru_cache(maxsize=64)
def fitted(case: Case, seed: int) -> Fitted:
    """The model on its table, shaken, with its law over the grid."""
    rows = tables.table(case.kind, seed)
    settings = dict(SETTINGS.get(case.class_name, {}))
    if case.name in VARIANTS:
        settings |= VARIANTS[case.name][1]
    model = registry.model_class(case.class_name)(**settings, schema=schema_of(case.kind), random_state=seed)
    model.fit(rows)
    model.params_ = shaken(model.params_, seed, SHAKE_COUNTS if "count" in tables.KINDS[case.kind] else SHAKE)
    return Fitted(model, rows, Law(model, tables.grid(case.kind, rows, model.cells_.scaling.scale)))


def shaken(params: Any, seed: int, scale: float = SHAKE) -> Any:
    """Parameters with noise on the arrays that couple units; zeros, which are no couplings, stay zero."""
    rng = np.random.default_rng(seed + 1000)

    def one(path: tuple, leaf: Any) -> Any:
        names = [str(getattr(entry, "name", "")) for entry in path]
        if not set(names) & set(COUPLED) or set(names) & set(LEFT):
            return leaf
        noise = scale * rng.normal(size=leaf.shape)
        if leaf.ndim == 2 and leaf.shape[0] == leaf.shape[1] and np.allclose(leaf, np.asarray(leaf).T):
            noise = (noise + noise.T) / 2
        return leaf + jnp.asarray(np.where(np.asarray(leaf) == 0, 0, noise), leaf.dtype)

    return jax.tree_util.tree_map_with_path(one, params)
