"""Annealed importance sampling of a binary RBM as one writes it in PyTorch; runs in the peers' environment.

Takes one argument, JSON: path of the machine (.npz with weights, visible_bias, hidden_bias, base), the stops, chains,
seed and repetitions. Prints JSON: seconds of each repetition, log weights of the last one, versions.
"""

import itertools
import json
import math
import sys
import time
from importlib.metadata import version

import numpy as np
import torch
from torch.nn.functional import softplus


@torch.no_grad()
def anneal(weights, visible_bias, hidden_bias, base, stops, n_chains):
    """Log Z as each chain has it, from independent pixels with logits `base` to the machine."""
    x = torch.bernoulli(torch.sigmoid(base).expand(n_chains, -1))
    log_weight = torch.zeros(n_chains)
    for before, after in itertools.pairwise(stops):
        logits = x @ weights + hidden_bias
        log_weight += (after - before) * (x @ (visible_bias - base))
        log_weight += (softplus(after * logits) - softplus(before * logits)).sum(dim=1)
        h = torch.bernoulli(torch.sigmoid(after * logits))
        x = torch.bernoulli(torch.sigmoid(base + after * (h @ weights.T + visible_bias - base)))
    return log_weight + softplus(base).sum() + len(hidden_bias) * math.log(2)


def main(machine, stops, n_chains, seed, n_repeats):
    torch.manual_seed(seed)
    with np.load(machine) as arrays:
        parts = {name: torch.from_numpy(arrays[name]) for name in ("weights", "visible_bias", "hidden_bias", "base")}
    stops = np.load(stops).tolist()
    seconds = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        log_weights = anneal(**parts, stops=stops, n_chains=n_chains)
        seconds.append(time.perf_counter() - start)
    versions = {"torch": version("torch")}
    print(json.dumps({"seconds": seconds, "log_weights": log_weights.tolist(), "versions": versions}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
