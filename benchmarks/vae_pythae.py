"""VAE with the architecture of pythae's default networks: seconds of an epoch over 20,000 rows, beside pythae's own.

One hidden layer of 512 ReLU each way, batches and learning rate as pythae has them by default; binary rows, which its
`bce` loss and our binary columns treat alike. pythae runs in the environment of the peers. Its seconds are those of its
epochs alone; ours are those of the whole fit, divided by its epochs.
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

BAR = 5.0


def run(*, small: bool, seed: int) -> Outcome:
    peers.prepare()
    dataset = data.load("binarized-mnist", small=small, n_small=200)
    train, test = (part[:20_000].astype(np.float32) for part in (dataset.train, dataset.test))
    n_epochs, n_rounds = (1, 1) if small else (5, 3)
    recipe = recipes.VAE_LIKE_PYTHAE | {"n_epochs": n_epochs, "n_importance": 1}
    answers = []

    def fit_ours():
        return likely.VAE(**recipe, schema=dataset.schema, random_state=seed).fit(train)

    with tempfile.TemporaryDirectory() as folder:
        paths = {part: str(Path(folder) / f"{part}.npy") for part in ("train", "test")}
        np.save(paths["train"], train)
        np.save(paths["test"], test)

        def fit_peer():
            answers.append(peers.run("peer_pythae", **paths, n_epochs=n_epochs, seed=seed))

        ours, _ = in_turns(fit_ours, fit_peer, n_rounds=n_rounds)
    answer = answers[-1]
    _check_alike(answer, recipe)
    epoch_peer = statistics.median(s for one in answers for s in one["seconds"])
    epoch_ours = ours.median / n_epochs
    bounds = {"ours": ours.result.score(test), "peer": answer["elbo"]}
    ratio = epoch_peer / epoch_ours
    line = Line(
        what=f"VAE as pythae's default, an epoch of {len(train):,} rows",
        ours=in_words(epoch_ours),
        peer=in_words(epoch_peer),
        ratio=ratio,
        quality=f"test ELBO after {n_epochs}: ours {bounds['ours']:.1f}, peer {bounds['peer']:.1f}",
        bar=f"≥ {BAR:g}×",
        reached=bool(ratio >= BAR),
    )
    figures = {
        "recipe": recipe,
        "rows": len(train),
        "epochs": n_epochs,
        "seconds_per_epoch": {"ours": epoch_ours, "peer": epoch_peer},
        "ours_fit_seconds": ours.to_json(),
        "peer_epoch_seconds": [one["seconds"] for one in answers],
        "elbo": bounds,
    }
    return Outcome([line], figures, answer["versions"])


def _check_alike(answer: dict, recipe: dict) -> None:
    """Whether our recipe still is pythae's default."""
    for name, theirs in (("batch_size", "batch_size"), ("learning_rate", "learning_rate"), ("n_components", "latents")):
        if recipe[name] != answer[theirs]:
            raise ValueError(f"pythae's {theirs} is {answer[theirs]}, recipes.VAE_LIKE_PYTHAE has {recipe[name]}.")
