"""Annealed importance sampling in a process of its own, to see several devices: `python -m tests.montecarlo.run_alone`.

Prints on how many devices the log weights live, then the log weights.
"""

import jax
import jax.numpy as jnp
import numpy as np

from likely.montecarlo.ais import _mesh, _run


def log_weights() -> jax.Array:
    """Of ten chains, on all devices."""
    start, move = jax.random.split(jax.random.key(0))
    x = jax.random.normal(start, (10,))
    stops = jnp.linspace(0, 1, 21)

    def kernel(key, x, at):
        return 0.6 * x + 0.8 * jax.random.normal(key, x.shape) / jnp.sqrt(1 + 8 * at)

    return _run(move, x, stops, lambda x: -0.5 * x**2, lambda x: -4.5 * x**2, kernel, _mesh(10))


def main() -> None:
    logs = log_weights()
    print(len(logs.sharding.device_set), *np.asarray(logs))  # noqa: T201


if __name__ == "__main__":
    main()
