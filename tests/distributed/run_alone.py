"""Fits in a process of their own, which may be one of several: what each gave, as arrays in one file.

python -m tests.distributed.run_alone OUTPUT NAMES [PORT N_PROCESSES RANK]
"""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np

import likely
from likely import distributed


def bits(n: int = 301, d: int = 9, share_of_holes: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(3)
    kinds = rng.random((4, d))
    rows = (rng.random((n, d)) < kinds[rng.integers(4, size=n)]).astype(float)
    rows[rng.random(rows.shape) < share_of_holes] = np.nan
    return rows


def reals(n: int = 301, d: int = 5, share_of_holes: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
    rows[rng.random(rows.shape) < share_of_holes] = np.nan
    return rows


def codes(n: int = 5001, d: int = 4) -> np.ndarray:
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(9), size=(3, d))
    kind = rng.integers(3, size=n)
    return np.stack([[rng.choice(9, p=shares[k, j]) for k in kind] for j in range(d)], axis=1).astype(float)


def fits() -> dict[str, Any]:
    """By name: the model, the rows, and rows to validate by."""
    table = likely.Schema.of_kinds(["categorical"] * 4) if hasattr(likely.Schema, "of_kinds") else None
    return {
        "rbm": (likely.RBM(6, n_epochs=4, batch_size=25, n_temperatures=20, random_state=0), bits(), bits(60)),
        "vae": (likely.VAE(2, n_epochs=3, batch_size=50, random_state=0), reals(share_of_holes=0.1), reals(60)),
        "mixture": (likely.Mixture(3, covariance="full", random_state=0), reals(share_of_holes=0.1), None),
        "coded": (likely.Mixture(3, random_state=0, schema=table), codes(), None),
        "factors": (likely.FactorAnalysis(2, random_state=0), reals(share_of_holes=0.1), None),
        "circuit": (likely.Circuit(4, n_trees=2, n_epochs=2, random_state=0), bits(share_of_holes=0.1), None),
        "network": (likely.BayesianNetwork(structure="tree", random_state=0), bits(share_of_holes=0.1), None),
    }


def learned(model: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Parameters, history and evidence of a fitted model."""
    leaves = jax.tree.leaves(model.params_)
    found = {f"params{number}": np.asarray(leaf) for number, leaf in enumerate(leaves)}
    history = {name: np.asarray(curve) for name, curve in model.history_.items() if name != "seconds"}
    return found | history | {"evidence": model.score_samples(rows[:50])}


def main(output: str, names: str, *where: str) -> None:
    if where:
        port, n_processes, rank = (int(value) for value in where)
        distributed.start(f"127.0.0.1:{port}", n_processes, rank)
    arrays = {"n_devices": np.array(jax.device_count()), "n_processes": np.array(distributed.n_processes())}
    for name in names.split(","):
        model, rows, valid = fits()[name]
        model.fit(rows, **({} if valid is None else {"valid": valid}))
        arrays |= {f"{name}/{key}": value for key, value in learned(model, rows).items()}
    np.savez(f"{output}.{distributed.rank()}.npz", **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
