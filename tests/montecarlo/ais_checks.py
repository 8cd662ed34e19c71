"""What tests of AIS and their negative controls share."""

from __future__ import annotations

import jax

from likely.montecarlo import ais, reverse_ais

N_CHAINS = 400


def check_both_ways(log_start, log_target, sample_start, target_draws, kernel, exact, seed, stops) -> None:
    """Forward and reverse estimates are at the exact log ratio, within five of their errors, which are small."""
    ahead, back = jax.random.split(jax.random.key(seed))
    forward = ais(ahead, log_start, log_target, sample_start, kernel, n_chains=N_CHAINS, stops=stops)
    reverse = reverse_ais(back, log_start, log_target, target_draws, kernel, stops=stops)
    for estimate in (forward, reverse):
        assert estimate.stderr < 0.1
        off = (estimate.log_ratio - exact) / estimate.stderr
        assert abs(off) < 5, f"{off:.1f} standard errors off"
