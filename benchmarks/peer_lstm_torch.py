"""A language model of PyTorch's own parts, nn.LSTM and cross-entropy, on the same stretches; in the peers' environment.

Takes one argument, JSON: path of the stretches (n_steps, n_streams, 2 length) as .npy, number of tokens, size and
number of layers, learning rate, repetitions. Prints JSON: seconds of each pass over the stretches, mean loss of the
last, versions.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import torch
from torch import nn


class Network(nn.Module):
    """Embedding, LSTM, linear."""

    def __init__(self, n_tokens, size, n_layers):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, size)
        self.cells = nn.LSTM(size, size, n_layers, batch_first=True)
        self.output = nn.Linear(size, n_tokens)

    def forward(self, tokens, state):
        """Scores of the next tokens, and the last state."""
        outputs, state = self.cells(self.embedding(tokens), state)
        return self.output(outputs), state


def one_pass(network, optimiser, stretches):
    state, total = None, 0.0
    for stretch in stretches:
        inputs, targets = stretch.chunk(2, dim=1)
        scores, state = network(inputs, state)
        state = tuple(part.detach() for part in state)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=-1)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        total += float(loss.detach())
    return total / len(stretches)


def main(stretches, n_tokens, size, n_layers, learning_rate, seed, n_repeats):
    torch.manual_seed(seed)
    parts = torch.from_numpy(np.load(stretches)).long()
    network = Network(n_tokens, size, n_layers)
    optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)
    one_pass(network, optimiser, parts[:2])
    seconds = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        loss = one_pass(network, optimiser, parts)
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "loss": loss, "versions": {"torch": version("torch")}}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
