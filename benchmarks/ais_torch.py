"""Annealed importance sampling of a binary RBM, 784-500, 10,000 temperatures and 100 chains, beside plain PyTorch.

The machine is trained on binarized-mnist for a few epochs, so that its weights are a real machine's. Both take the same
stops from the same base; the peer is the algorithm as one writes it in PyTorch, in the environment of the peers. Both
estimates of log Z must agree within their errors.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import likely
from benchmarks import data, peers, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_turns, in_words
from likely.columns import Columns
from likely.models.energy.harmonium.annealing import Path as AnnealingPath
from likely.models.energy.harmonium.annealing import forward_log_sums, marginals
from likely.models.energy.harmonium.machine import RBMParams
from likely.models.energy.normaliser.schedule import temperatures
from likely.montecarlo import log_mean_weight, replicate_log_mean

BAR = 2.0


def run(*, small: bool, seed: int) -> Outcome:
    peers.prepare()
    n_chains, n_temperatures, n_rounds = (10, 20, 1) if small else (100, 10_000, 2)
    path = random_path(seed) if small else trained_path(seed)
    anneal = eqx.filter_jit(forward_log_sums)
    answers = []

    def ours() -> np.ndarray:
        return np.asarray(anneal(jax.random.key(seed), path, n_chains, n_temperatures), np.float64)

    with tempfile.TemporaryDirectory() as folder:
        machine, stops = str(Path(folder) / "machine.npz"), str(Path(folder) / "stops.npy")
        p = path.params
        np.savez(machine, weights=p.weights, visible_bias=p.visible_bias, hidden_bias=p.hidden_bias, base=path.base)
        np.save(stops, temperatures(n_temperatures))

        def peer() -> None:
            answers.append(
                peers.run("peer_ais_torch", machine=machine, stops=stops, n_chains=n_chains, seed=seed, n_repeats=1)
            )

        timing, _ = in_turns(ours, peer, n_rounds=n_rounds)
    peer_seconds = [s for one in answers for s in one["seconds"]]
    log_z, error = estimate(timing.result)
    peer_log_z, peer_error = estimate(np.array(answers[-1]["log_weights"]))
    ratio = statistics.median(peer_seconds) / timing.median
    d, k = path.params.weights.shape
    line = Line(
        what=f"AIS, RBM {d}-{k}, {n_temperatures:,} temperatures, {n_chains} chains",
        ours=in_words(timing.median),
        peer=in_words(statistics.median(peer_seconds)),
        ratio=ratio,
        quality=f"log Z: ours {log_z:.2f} ± {error:.2f}, peer {peer_log_z:.2f} ± {peer_error:.2f}",
        bar=f"≥ {BAR:g}×",
        reached=bool(ratio >= BAR),
    )
    figures = {
        "ours_seconds": timing.to_json(),
        "peer_seconds": peer_seconds,
        "log_z": {"ours": [log_z, error], "peer": [peer_log_z, peer_error]},
    }
    return Outcome([line], figures, answers[-1]["versions"])


def trained_path(seed: int) -> AnnealingPath:
    """To a machine of 500 hidden units after five epochs."""
    dataset = data.load("binarized-mnist", small=False, n_small=0)
    recipe = recipes.RBM_RACE | {"n_epochs": 5}
    model = likely.RBM(**recipe, schema=dataset.schema, random_state=seed).fit(dataset.train.astype(np.float32))
    return path_to(model.params_, model.columns_)


def random_path(seed: int) -> AnnealingPath:
    """To a machine that takes no training."""
    weights, visible, hidden = np.random.default_rng(seed).normal(size=(3, 30, 20)).astype(np.float32) * 0.3
    params = RBMParams(
        jnp.asarray(weights), jnp.asarray(visible[:, 0]), jnp.asarray(hidden[0]), jnp.zeros((1, 20), bool)
    )
    return path_to(params, Columns(("binary",) * 30, (1,) * 30))


def path_to(params: RBMParams, columns: Columns) -> AnnealingPath:
    """From the machine's marginals to the machine, nothing clamped."""
    return AnnealingPath(params, marginals(params, columns), jnp.zeros(columns.n_columns), None, columns)


def estimate(log_weights: np.ndarray) -> tuple[float, float]:
    """Log of the mean weight, and its standard error."""
    replicates = replicate_log_mean(log_weights, len(log_weights))
    return float(log_mean_weight(log_weights)), float(replicates.std(ddof=1) / np.sqrt(len(replicates)))
