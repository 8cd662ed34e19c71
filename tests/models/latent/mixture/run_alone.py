"""Bits of an EM step's sums in a process of its own, on some of the processor's cores: `python -m ... 1 right`."""

from __future__ import annotations

import os
import sys

import numpy as np


def main(n_cores: int, kind: str) -> None:
    # Before JAX counts the cores.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n_cores])
    import jax
    import jax.numpy as jnp

    from likely.models.latent.mixture import gaussian_block

    if kind == "summed":  # a planted bug: the sum over rows as a loop
        gaussian_block._summed = lambda shares, centred: (shares[:, :, None] * centred).sum(0)
    rng = np.random.default_rng(0)
    x, means, shares = (jnp.asarray(rng.random(shape), jnp.float32) for shape in ((512, 50), (8, 50), (512, 8)))
    block = gaussian_block.GaussianBlock(means, jnp.broadcast_to(jnp.eye(50), (8, 50, 50)))
    sums = jax.jit(lambda x, shares: gaussian_block.moments(block, x, None, shares))(x, shares)
    sys.stdout.write(" ".join(np.asarray(part).tobytes().hex() for part in sums))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
