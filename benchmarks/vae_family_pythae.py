"""β-VAE, IWAE and convolutional VAE beside pythae's, of equal architecture: seconds of an epoch over 20,000 rows.

As `vae_pythae`, with pythae's other objectives, and once with two convolutions of stride 2 in place of the hidden layer
(PyTorch's own there). pythae's IWAE has the plain gradient through all ten samples, ours the doubly-reparameterised one
through one of the ten, drawn by its weight.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import numpy as np

import likely
from benchmarks import data, peers, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_turns, in_words

BARS = {"beta": 5.0, "iwae": 5.0, "convolutional": 1.0}
NAMES = {"beta": "β-VAE, β = 4", "iwae": "IWAE, k = 10, gradient through one", "convolutional": "convolutional VAE"}


def run(*, small: bool, seed: int) -> Outcome:
    peers.prepare()
    dataset = data.load("binarized-mnist", small=small, n_small=100)
    train, test = (part[:20_000].astype(np.float32) for part in (dataset.train, dataset.test))
    lines, figures, versions = [], {}, {}
    kinds = list(BARS)[:1] if small else list(BARS)
    for kind in kinds:
        line, figures[kind], versions = _one(kind, dataset.schema, train, test, small, seed)
        lines.append(line)
    return Outcome(lines, figures, versions)


def _one(kind: str, schema, train: np.ndarray, test: np.ndarray, small: bool, seed: int) -> tuple[Line, dict, dict]:
    n_epochs, n_rounds = (1, 1) if small else (2, 2)
    own = recipes.VAE_FAMILY_LIKE_PYTHAE[kind]
    recipe = recipes.VAE_LIKE_PYTHAE | {"n_epochs": n_epochs, "n_importance": 1, "beta_warmup": 0} | own
    options = {"beta": own.get("beta"), "n_samples": own.get("n_importance_train"), "channels": own.get("channels")}
    answers = []

    def fit_ours():
        return likely.VAE(**recipe, schema=schema, random_state=seed).fit(train)

    with tempfile.TemporaryDirectory() as folder:
        paths = {part: str(Path(folder) / f"{part}.npy") for part in ("train", "test")}
        np.save(paths["train"], train)
        np.save(paths["test"], test)

        def fit_peer():
            answers.append(peers.run("peer_pythae", **paths, n_epochs=n_epochs, seed=seed, kind=kind, **options))

        ours, _ = in_turns(fit_ours, fit_peer, n_rounds=n_rounds)
    epoch_peer = statistics.median(s for one in answers for s in one["seconds"])
    epoch_ours = ours.median / n_epochs
    ratio = epoch_peer / epoch_ours
    bounds = {"ours": ours.result.score(test), "peer_by_its_own_loss": answers[-1]["elbo"]}
    line = Line(
        what=f"{NAMES[kind]}, an epoch of {len(train):,} rows",
        ours=in_words(epoch_ours),
        peer=in_words(epoch_peer),
        ratio=ratio,
        quality=f"test ELBO after {n_epochs}: ours {bounds['ours']:.1f}",
        bar=f"≥ {BARS[kind]:g}×",
        reached=bool(ratio >= BARS[kind]),
    )
    figures = {
        "recipe": recipe,
        "rows": len(train),
        "seconds_per_epoch": {"ours": epoch_ours, "peer": epoch_peer},
        "ours_fit_seconds": ours.to_json(),
        "peer_epoch_seconds": [one["seconds"] for one in answers],
        "bounds": bounds,
    }
    return line, figures, answers[-1]["versions"]
