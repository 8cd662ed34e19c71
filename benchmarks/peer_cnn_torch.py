"""Two convolutions and a linear layer of PyTorch's own parts, trained by Adam; in the peers' environment.

Takes one argument, JSON: path of pixels and classes (n, 785) as .npy, channels, rows of a step, learning rate, seed,
threads, passes. Prints JSON: seconds and processor seconds of each pass over the rows, mean loss of the last, versions.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import torch
from torch import nn

SIDE = 28


def one_pass(network, optimiser, pixels, classes, batch_size):
    total, n_steps = 0.0, len(pixels) // batch_size
    for rows in torch.randperm(len(pixels)).split(batch_size)[:n_steps]:
        loss = nn.functional.cross_entropy(network(pixels[rows]), classes[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        total += float(loss.detach())
    return total / n_steps


def main(rows, channels, batch_size, learning_rate, seed, n_threads, n_passes):
    torch.manual_seed(seed)
    torch.set_num_threads(n_threads)
    table = np.load(rows)
    pixels = torch.from_numpy(table[:, :-1]).reshape(-1, 1, SIDE, SIDE).contiguous()
    classes = torch.from_numpy(table[:, -1]).long()
    first, second = channels
    network = nn.Sequential(
        nn.Conv2d(1, first, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(first, second, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(second * (SIDE // 4) ** 2, 10),
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)
    one_pass(network, optimiser, pixels[: 3 * batch_size], classes[: 3 * batch_size], batch_size)
    seconds, processor = [], []
    for _ in range(n_passes):
        start, busy = time.perf_counter(), time.process_time()
        loss = one_pass(network, optimiser, pixels, classes, batch_size)
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - busy)
    answer = {"seconds": seconds, "processor": processor, "loss": loss, "versions": {"torch": version("torch")}}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
