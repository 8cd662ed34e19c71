"""RBM with 500 hidden units on binarized-mnist, beside scikit-learn's BernoulliRBM: an epoch, and the way to its best.

First the seconds of one epoch of PCD-1 in batches of 100. Then a race: BernoulliRBM learns at several rates, its
weights are put into our machine and their test evidence is measured by our annealed importance sampling; the best that
it ever reaches is the mark, and its seconds are those up to there. Ours starts afresh with a larger number of epochs
each time until it is at the mark; its seconds are those of that one fit.
"""

from __future__ import annotations

import time
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from sklearn.neural_network import BernoulliRBM

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_turns, in_words, stopwatch

EPOCH_BAR, RACE_BAR = 1.4, 5.0
BATCH = 100
PEER_RATES = (0.01, 0.05)
PEER_LOOKS = (1, 2, 4, 8, 12, 16, 20)  # epochs after which BernoulliRBM is judged


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=200)
    recipe = recipes.RBM_RACE | ({"n_components": 24, "n_temperatures": 100, "n_ais_chains": 16} if small else {})
    rows = dataset.train.astype(np.float32)  # the same for both; scikit-learn keeps single precision
    epoch_line, epoch_figures = _one_epoch(rows, dataset, recipe, seed, n_rounds=1 if small else 5)
    looks = (1, 2) if small else PEER_LOOKS
    race_line, race_figures = _race(rows, dataset, recipe, seed, looks)
    return Outcome([epoch_line, race_line], {"epoch": epoch_figures, "race": race_figures})


def _one_epoch(rows: np.ndarray, dataset, recipe: dict[str, Any], seed: int, n_rounds: int) -> tuple[Line, dict]:
    ours, peer = in_turns(
        lambda: _ours(recipe | {"n_epochs": 1, "learning_rate": 0.01}, dataset, seed).fit(rows),
        lambda: _peer(recipe, 0.01, seed, n_iter=1).fit(rows),
        n_rounds=n_rounds,
    )
    judged = {"ours": judge(ours.result, dataset.test), "peer": judge(as_ours(peer.result, ours.result), dataset.test)}
    ratio = peer.median / ours.median
    line = Line(
        what=f"RBM 784-{recipe['n_components']}, one epoch of PCD-1",
        ours=in_words(ours.median),
        peer=in_words(peer.median),
        ratio=ratio,
        quality=f"AIS after it, rate .01: ours {judged['ours']['ais']:.1f}, peer {judged['peer']['ais']:.1f}",
        bar=f"≥ {EPOCH_BAR:g}×",
        reached=bool(ratio >= EPOCH_BAR),
    )
    return line, {"ours_seconds": ours.to_json(), "peer_seconds": peer.to_json(), "evidence": judged}


def _race(rows: np.ndarray, dataset, recipe: dict[str, Any], seed: int, looks: tuple[int, ...]) -> tuple[Line, dict]:
    template = _ours(recipe | {"n_epochs": 1}, dataset, seed).fit(rows[:BATCH])
    trail = [
        look for rate in PEER_RATES for look in _peer_trail(_peer(recipe, rate, seed), rows, looks, template, dataset)
    ]
    mark = max(trail, key=lambda look: look["ais"])
    attempts = _our_attempts(rows, dataset, recipe, seed, mark["ais"])
    won = attempts[-1]["ais"] >= mark["ais"]
    ratio = mark["seconds"] / attempts[-1]["seconds"] if won else None
    line = Line(
        what=f"RBM 784-{recipe['n_components']}, time to the peer's best test evidence",
        ours=in_words(attempts[-1]["seconds"]) if won else "not reached",
        peer=in_words(mark["seconds"]),
        ratio=ratio,
        quality=f"AIS: ours {attempts[-1]['ais']:.1f}, peer {mark['ais']:.1f}",
        bar=f"≥ {RACE_BAR:g}×",
        reached=bool(won and ratio >= RACE_BAR),
    )
    return line, {"mark": mark, "peer_trail": trail, "our_attempts": attempts}


def _peer_trail(
    peer: BernoulliRBM, rows: np.ndarray, looks: tuple[int, ...], template: likely.RBM, dataset
) -> list[dict[str, Any]]:
    """Evidence of BernoulliRBM after some epochs, with the seconds that it had learned for.

    `partial_fit` batch by batch is what its `fit` does, in the same order; it lets one look in between.
    """
    trail, seconds = [], 0.0
    for epoch in range(1, max(looks) + 1):
        start = time.perf_counter()
        for first in range(0, len(rows), BATCH):
            peer.partial_fit(rows[first : first + BATCH])
        seconds += time.perf_counter() - start
        if epoch in looks:
            found = {"learning_rate": peer.learning_rate, "epochs": epoch, "seconds": seconds}
            trail.append(found | judge(as_ours(peer, template), dataset.test))
    return trail


def _our_attempts(rows: np.ndarray, dataset, recipe: dict[str, Any], seed: int, mark: float) -> list[dict[str, Any]]:
    """Fits with more and more epochs until one is at the mark: seconds of the whole fit, compiling included or not."""
    attempts = []
    for n_epochs in recipes.RACE_EPOCHS:
        model = _ours(recipe | {"n_epochs": n_epochs}, dataset, seed)
        first, _ = stopwatch(lambda model=model: model.fit(rows))
        seconds, _ = stopwatch(lambda model=model: model.fit(rows))
        attempts.append({"epochs": n_epochs, "first_seconds": first, "seconds": seconds} | judge(model, dataset.test))
        if attempts[-1]["ais"] >= mark:
            break
    return attempts


def as_ours(peer: BernoulliRBM, template: likely.RBM) -> likely.RBM:
    """Our machine with a BernoulliRBM's weights, biases and chains."""
    parts = {
        "weights": peer.components_.T,
        "visible_bias": peer.intercept_visible_,
        "hidden_bias": peer.intercept_hidden_,
    }
    params = template.params_
    for name, array in parts.items():
        params = eqx.tree_at(lambda p, name=name: getattr(p, name), params, jnp.asarray(array, jnp.float32))
    template.params_ = eqx.tree_at(lambda p: p.chains, params, jnp.asarray(peer.h_samples_ > 0))
    return template


def judge(model: likely.RBM, test: np.ndarray) -> dict[str, float]:
    """Mean test evidence by annealed importance sampling, and by its reverse."""
    evidence = model.evidence(test)
    return {"ais": evidence.mean, "reverse_ais": float(evidence.lower.mean())}


def _ours(recipe: dict[str, Any], dataset, seed: int) -> likely.RBM:
    return likely.RBM(**recipe, schema=dataset.schema, random_state=seed)


def _peer(recipe: dict[str, Any], rate: float, seed: int, n_iter: int = 10) -> BernoulliRBM:
    return BernoulliRBM(recipe["n_components"], learning_rate=rate, batch_size=BATCH, n_iter=n_iter, random_state=seed)
