"""DBN 784-500-1000 on binarized-mnist within 25 minutes, by its bound with log Z of the top from AIS both ways."""

from __future__ import annotations

import likely
from benchmarks import data, recipes
from benchmarks.dbm_binarized_mnist import judged
from benchmarks.outcome import Outcome


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=200)
    recipe = recipes.DBN_500_1000 | ({"layers": (3, 2), "n_epochs": 1} if small else {})
    return judged(likely.DBN(**recipe, schema=dataset.schema, random_state=seed), recipe, dataset, "-84.55 published")
