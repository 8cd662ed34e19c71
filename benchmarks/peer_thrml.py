"""thrml's block Gibbs sampling of an Ising grid; runs in the peers' environment.

Takes one argument, JSON: side of the periodic grid, chains, sweeps, coupling, seed and repetitions. Prints JSON:
seconds of each repetition after one that compiles, energy per spin and magnetisation of each chain, versions.
"""

import json
import sys
import time
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
from thrml import Block, SamplingSchedule, SpinNode, sample_states
from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init


def grid(side):
    """Nodes, edges, and the two colours of a checkerboard."""
    nodes = [[SpinNode() for _ in range(side)] for _ in range(side)]
    flat = [node for row in nodes for node in row]
    right = [(nodes[i][j], nodes[i][(j + 1) % side]) for i in range(side) for j in range(side)]
    below = [(nodes[i][j], nodes[(i + 1) % side][j]) for i in range(side) for j in range(side)]
    colours = [Block([nodes[i][j] for i in range(side) for j in range(side) if (i + j) % 2 == c]) for c in (0, 1)]
    return flat, right + below, colours


jax.config.update("jax_numpy_rank_promotion", "allow")  # thrml relies on it; our tests forbid it


def main(side, n_chains, n_sweeps, coupling, seed, n_repeats):
    nodes, edges, colours = grid(side)
    model = IsingEBM(nodes, edges, jnp.zeros(len(nodes)), jnp.full(len(edges), coupling), jnp.array(1.0))
    program = IsingSamplingProgram(model, colours, clamped_blocks=[])
    schedule = SamplingSchedule(n_warmup=n_sweeps - 1, n_samples=1, steps_per_sample=1)

    @jax.jit
    def sample(keys, start):
        return jax.vmap(lambda k, s: sample_states(k, program, schedule, s, [], [Block(nodes)])[0][-1])(keys, start)

    seconds = []
    for number in range(n_repeats + 1):
        begin, move = jax.random.split(jax.random.key(seed + number))
        start = jax.block_until_ready(hinton_init(begin, model, colours, (n_chains,)))
        clock = time.perf_counter()
        end = jax.block_until_ready(sample(jax.random.split(move, n_chains), start))
        seconds.append(time.perf_counter() - clock)
    spins = (2.0 * np.asarray(end) - 1).reshape(n_chains, side, side)
    energy = -coupling * (spins * (np.roll(spins, -1, 1) + np.roll(spins, -1, 2))).mean(axis=(1, 2))
    answer = {"seconds": seconds[1:], "energy": energy.tolist(), "magnetisation": spins.mean(axis=(1, 2)).tolist()}
    print(json.dumps(answer | {"versions": {name: version(name) for name in ("thrml", "jax")}}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
