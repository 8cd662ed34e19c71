"""Noise contrast beside exact maximum likelihood on 20 units, and beside persistent chains on 784: time to a mark.

Twenty pixels of binarized-mnist, and a fully visible Boltzmann machine of them: exact maximum likelihood sums over all
2^20 states in every step of SciPy's L-BFGS; noise contrast learns the same machine from rows and noise. The mark is
the test evidence that maximum likelihood ends with, less a hundredth of a nat; both evidences are exact. With 784
inputs and a network for an energy nothing is exact: noise contrast races persistent contrastive divergence instead, and
the evidence is annealed importance sampling's, with the reverse one beside it.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch
from likely.montecarlo import configurations, log_sum

TOLERANCE = 0.01  # nats below maximum likelihood that count as equal
EPOCHS = (1, 2, 4, 8, 16, 32)
LARGE_EPOCHS = {"nce": (1, 3, 9), "pcd": (1, 3)}
LARGE = {"hidden": (512,), "batch_size": 100, "learning_rate": 1e-3, "weight_decay": 0.02, "n_temperatures": 1000,
         "n_ais_chains": 64, "n_sweeps": 500}  # fmt: skip
CONTRAST = {"nce": {"n_noise": 5}, "pcd": {"n_steps": 5, "n_chains": 100}}


class Pairs(eqx.Module):
    """E(x) = -Σ b_i x_i - Σ w_ij x_i x_j, as a network for `EnergyModel`."""

    theta: jax.Array

    def __call__(self, row: jax.Array) -> jax.Array:
        """The energy of one row."""
        return -features(row[None])[0] @ self.theta


def features(rows: jax.Array) -> jax.Array:
    first, second = np.triu_indices(rows.shape[1], 1)
    return jnp.concatenate([rows, rows[:, first] * rows[:, second]], axis=1)


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=200)
    lines, figures = [], {}
    for name, race in (("machine", _small_machine), ("network", _large_network)):
        line, figures[name] = race(dataset, small, seed)
        lines.append(line)
    return Outcome(lines, figures)


# ------------------------------------------------------------------ twenty units
def _small_machine(dataset, small: bool, seed: int) -> tuple[Line, dict]:
    pixels = _pixels(8 if small else 20)
    train, test = (np.asarray(part)[:, pixels].astype(np.float32) for part in (dataset.train, dataset.test))
    exact = _maximum_likelihood(train, test, n_steps=3 if small else 60)
    mark = exact[-1]["evidence"] - TOLERANCE
    reached = next(look for look in exact if look["evidence"] >= mark)
    noise = likely.Independent() if small else likely.Mixture(10, random_state=seed)
    attempts = _contrasts(train, test, noise, seed, mark, EPOCHS[:1] if small else EPOCHS)
    ours = attempts[-1]
    won = ours["evidence"] >= mark
    line = Line(
        what=f"NCE of a {len(pixels)}-unit machine, time to maximum likelihood's test evidence",
        ours=in_words(ours["seconds"]) if won else "not reached",
        peer=in_words(reached["seconds"]),
        ratio=reached["seconds"] / ours["seconds"] if won else None,
        quality=f"exact: NCE {ours['evidence']:.3f}, L-BFGS {exact[-1]['evidence']:.3f}",
    )
    return line, {"mark": mark, "maximum_likelihood": exact, "nce": attempts}


def _maximum_likelihood(train: np.ndarray, test: np.ndarray, n_steps: int) -> list[dict[str, float]]:
    """The course of L-BFGS with the exact gradient: E_data[f] - E_model[f]."""
    d = train.shape[1]
    ours, others = (np.asarray(features(jnp.asarray(rows)).mean(axis=0), np.float64) for rows in (train, test))
    trail, wasted = [], 0.0

    @jax.jit
    def expectations(theta):
        states = lambda numbers: features(configurations(numbers, (2,) * d).astype(jnp.float32))  # noqa: E731
        log_z, mean = log_sum(2**d, lambda numbers: (states(numbers) @ theta)[None], states)
        return log_z[0], mean[0]

    expectations(jnp.zeros(len(ours)))[0].block_until_ready()  # compiled before the clock starts
    start = time.perf_counter()

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal wasted
        log_z, mean = (np.asarray(part, np.float64) for part in expectations(jnp.asarray(theta, jnp.float32)))
        before = time.perf_counter()
        trail.append({"seconds": before - start - wasted, "evidence": float(theta @ others - log_z)})
        wasted += time.perf_counter() - before
        return float(log_z - theta @ ours), mean - ours

    minimize(loss, np.zeros(len(ours)), jac=True, method="L-BFGS-B", options={"maxiter": n_steps, "maxcor": 30})
    return trail


def _contrasts(
    train: np.ndarray, test: np.ndarray, noise: likely.Model, seed: int, mark: float, epochs: tuple[int, ...]
) -> list[dict[str, Any]]:
    """Fits with more and more epochs until one is at the mark; the seconds are those of that whole fit alone."""
    attempts: list[dict[str, Any]] = []
    network = Pairs(jnp.zeros(train.shape[1] * (train.shape[1] + 1) // 2))
    for n_epochs in epochs:
        model = likely.EnergyModel(
            network, base=False, noise=noise, n_noise=10, n_epochs=n_epochs,
            batch_size=500, learning_rate=0.03, weight_decay=0.0, random_state=seed,
        )  # fmt: skip
        first, _ = stopwatch(partial(model.fit, train))
        seconds, _ = stopwatch(partial(model.fit, train))
        found = {"epochs": n_epochs, "first_seconds": first, "seconds": seconds, "evidence": model.score(test)}
        found |= {"log_z": float(model.log_partition().low[0]), "log_z_by_nce": model.log_partition_nce_}
        attempts.append(found)
        if found["evidence"] >= mark:
            break
    return attempts


def _pixels(n: int) -> np.ndarray:
    """A grid over the middle of the image."""
    rows, columns = (np.linspace(7, 20, k).round().astype(int) for k in ((4, 5) if n == 20 else (2, 4)))
    return (28 * rows[:, None] + columns[None, :]).ravel()


# ------------------------------------------------------------------ 784 inputs
def _large_network(dataset, small: bool, seed: int) -> tuple[Line, dict]:
    changes = {"hidden": (8,), "n_temperatures": 20, "n_ais_chains": 16, "n_sweeps": 10} if small else {}
    noise = likely.Independent() if small else likely.Mixture(100, max_iter=50, random_state=seed)
    test, trails = dataset.test[: 20 if small else 1000], {}
    for objective, epochs in LARGE_EPOCHS.items():
        more = CONTRAST[objective] | ({"noise": noise} if objective == "nce" else {})
        more = LARGE | more | changes | {"objective": objective}
        trails[objective] = _course(more, dataset, test, epochs[:1] if small else epochs, seed)
    best = {name: max(trail, key=lambda look: look["reverse_ais"]) for name, trail in trails.items()}
    mark = min(look["reverse_ais"] for look in best.values())
    ours, peer = (next(look for look in trails[name] if look["reverse_ais"] >= mark) for name in ("nce", "pcd"))
    line = Line(
        what=f"NCE of a 784-{LARGE['hidden'][0]}-1 energy, time to the evidence that both it and PCD reach",
        ours=in_words(ours["seconds"]),
        peer=in_words(peer["seconds"]),
        ratio=peer["seconds"] / ours["seconds"],
        quality=f"reverse AIS, best: NCE {best['nce']['reverse_ais']:.1f}, PCD {best['pcd']['reverse_ais']:.1f}",
    )
    return line, trails


def _course(
    recipe: dict[str, Any], dataset, test: np.ndarray, epochs: tuple[int, ...], seed: int
) -> list[dict[str, Any]]:
    """Evidence of fits of several lengths, each from the start; compiling is part of the first one's seconds only."""
    trail = []
    rows = dataset.train.astype(np.float32)
    fit = lambda n: likely.EnergyModel(**recipe, n_epochs=n, schema=dataset.schema, random_state=seed).fit(rows)  # noqa: E731
    fit(1)
    for n_epochs in epochs:
        seconds, model = stopwatch(partial(fit, n_epochs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", likely.EvidenceWarning)
            evidence = model.evidence(test)
        found = {"epochs": n_epochs, "seconds": seconds, "ais": evidence.mean}
        trail.append(found | {"reverse_ais": float(evidence.lower.mean()), "log_z_by_nce": model.log_partition_nce_})
    return trail
