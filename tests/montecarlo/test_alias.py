"""Alias tables: what is drawn has the probabilities that the table says."""

import jax
import numpy as np
from scipy.stats import chisquare

from likely.montecarlo.alias import alias_table, draw


def test_draws_have_their_probabilities(global_random_seed):
    """Chi-square; weights from 1 to 1,000 and one of 0, whose outcome never comes."""
    weights = np.random.default_rng(global_random_seed).geometric(0.005, 50).astype(float)
    weights[7] = 0
    table = alias_table(weights)
    drawn = np.asarray(draw(jax.random.key(global_random_seed), table, 200_000))
    counts = np.bincount(drawn, minlength=50)
    assert counts[7] == 0
    kept = np.arange(50) != 7
    assert chisquare(counts[kept], 200_000 * weights[kept] / weights.sum()).pvalue > 1e-4


def test_rare_outcomes_keep_their_share():
    """One of weight 1 beside one of 1e7: a cumulative sum in float32 would be off by half its share and more."""
    table = alias_table(np.array([1e7, 1.0, 1.0, 1.0]))
    share = table.threshold / 2**32
    drawn = share.copy()
    np.add.at(drawn, table.alias, 1 - share)
    np.testing.assert_allclose(drawn[1:] / 4, 1 / (1e7 + 3), rtol=1e-2)
