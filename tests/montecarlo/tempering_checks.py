"""What tests of parallel tempering and their negative controls share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from likely.montecarlo import dense_pairwise, log_unnormalised, run_chains, single_site_gibbs, start_tempering
from tests.models.energy.harmonium.learning_checks import check_frequencies
from tests.montecarlo.chain_checks import all_states, law, state_numbers

LADDER = jnp.array([1.0, 0.6, 0.2])


def bimodal(n: int, strength: float):
    """Spins that all agree or nearly so: two wells, one a little deeper."""
    couplings = strength / n * (1 - np.eye(n))
    return dense_pairwise(np.full(n, 0.05), couplings, states=(-1.0, 1.0))


def kernel_at(machine):
    return lambda key, x, at: single_site_gibbs(machine, order="fixed", beta=at)(key, x)


def log_density_at(machine):
    return lambda x, at: log_unnormalised(machine, x, at)


def check_replicas(step, machine, seed: int, n: int = 40_000, n_rounds: int = 4) -> None:
    """From exact draws at every temperature, each replica and each pair of neighbours keeps its exact law."""
    rng, d = np.random.default_rng(seed), machine.n_units
    states = all_states(d, -1.0, 1.0)
    laws = [law(lambda x, b=b: log_unnormalised(machine, jnp.asarray(x), b), states) for b in LADDER]
    starts = np.stack([states[rng.choice(len(p), n, p=p)] for p in laws]).astype(np.float32)
    state = start_tempering(jnp.asarray(starts[0]), len(LADDER))._replace(replicas=jnp.asarray(starts))
    end = np.asarray(jax.jit(lambda s: run_chains(jax.random.key(seed), step, s, n_rounds))(state).replicas)
    numbers = [state_numbers(replica) for replica in end]
    for r in range(len(LADDER) - 1):
        together = np.bincount(numbers[r] * len(states) + numbers[r + 1], minlength=len(states) ** 2)
        check_frequencies(together, np.outer(laws[r], laws[r + 1]).ravel())
