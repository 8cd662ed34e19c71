"""Gibbs sampling of a 100 x 100 Ising grid, 32 chains: spins a second, beside thrml.

Both visit the checkerboard's colours in turn. The grid is periodic and above the critical temperature, where the chains
forget their random start within some sweeps, so that the mean energy can be held against Onsager's exact one. thrml
runs in the environment of the peers; its compiling call is not counted, nor is ours.
"""

from __future__ import annotations

import statistics

import numpy as np
from scipy.special import ellipk

from benchmarks import peers
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_turns
from likely.montecarlo import grid_edges, sparse_gibbs, sparse_pairwise

BAR = 4.0
COUPLING = 0.3  # critical: 0.4407


def run(*, small: bool, seed: int) -> Outcome:
    peers.prepare()
    side, n_chains, n_sweeps, n_rounds = (10, 4, 5, 1) if small else (100, 32, 500, 3)
    edges = grid_edges((side, side), periodic=True)
    machine = sparse_pairwise(np.zeros(side * side), edges, COUPLING, states=(-1.0, 1.0))
    start = np.random.default_rng(seed).choice([-1.0, 1.0], (n_chains, side * side))
    answers = []

    def peer() -> None:
        sizes = {"side": side, "n_chains": n_chains, "n_sweeps": n_sweeps, "coupling": COUPLING}
        answers.append(peers.run("peer_thrml", **sizes, seed=seed, n_repeats=1 if small else 2))

    ours, _ = in_turns(lambda: sparse_gibbs(seed, machine, start, n_sweeps), peer, n_rounds=n_rounds)
    n_spins = side * side * n_chains * n_sweeps
    rate = n_spins / ours.median
    peer_rate = n_spins / statistics.median(s for one in answers for s in one["seconds"])
    energy = -COUPLING * (ours.result[:, edges[:, 0]] * ours.result[:, edges[:, 1]]).sum(axis=1) / side**2
    exact = onsager(COUPLING)
    off, peer_off = (errors_off(values, exact) for values in (energy, answers[-1]["energy"]))
    line = Line(
        what=f"Gibbs, Ising {side} x {side}, {n_chains} chains, {n_sweeps} sweeps",
        ours=f"{rate / 1e6:.0f} M spins/s",
        peer=f"{peer_rate / 1e6:.0f} M spins/s",
        ratio=rate / peer_rate,
        quality=f"energy against Onsager's {exact:.4f}: ours {off:+.1f}, peer {peer_off:+.1f} standard errors",
        bar=f"≥ {BAR:g}×",
        reached=bool(rate >= BAR * peer_rate),
    )
    figures = {
        "spins_per_second": {"ours": rate, "peer": peer_rate},
        "ours_seconds": ours.to_json(),
        "peer_seconds": [one["seconds"] for one in answers],
        "energy": {"exact": exact, "ours": float(energy.mean()), "peer": float(np.mean(answers[-1]["energy"]))},
        "magnetisation": {"ours": float(ours.result.mean()), "peer": float(np.mean(answers[-1]["magnetisation"]))},
    }
    return Outcome([line], figures, answers[-1]["versions"])


def onsager(coupling: float) -> float:
    """Energy of a spin on an infinite square grid, in units of the temperature (Onsager, 1944)."""
    tangent = np.tanh(2 * coupling)
    modulus = 2 * np.sinh(2 * coupling) / np.cosh(2 * coupling) ** 2
    return float(-coupling / tangent * (1 + 2 / np.pi * (2 * tangent**2 - 1) * ellipk(modulus**2)))


def errors_off(chains, exact: float) -> float:
    """How many standard errors of the chains' mean lie between it and the exact value."""
    chains = np.asarray(chains)
    return float((chains.mean() - exact) / (chains.std(ddof=1) / np.sqrt(len(chains))))
