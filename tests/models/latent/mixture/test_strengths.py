"""Strengths of the prior that the components' counts make likeliest, against counts of known strength."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

import likely
from likely.columns import Columns
from likely.models.latent.mixture import strengths
from likely.models.latent.mixture.strengths import CANDIDATES, learned_strengths

COLUMNS = Columns(("categorical", "binary", "real", "categorical"), (5, 1, 1, 5))
SHARES = np.array([0.4, 0.3, 0.15, 0.1, 0.05])


def drawn_counts(rng, strength, n_components=300, n=40):
    """(5, K) counts of components whose shares are Dirichlet around SHARES."""
    return rng.multinomial(n, rng.dirichlet(strength * SHARES, n_components)).T.astype(float)


def log_likelihood(strength, counts, shares):
    """By SciPy, one component after the other."""
    return sum(
        stats.dirichlet_multinomial.logpmf(own.astype(int), strength * shares, int(own.sum())) for own in counts.T
    )


def check_strengths(seed):
    rng = np.random.default_rng(seed)
    near, far = drawn_counts(rng, 64.0), drawn_counts(rng, 0.25)
    bits = far[0]
    statistics, mean = np.zeros((COLUMNS.n_statistics, near.shape[1])), np.ones(COLUMNS.n_statistics)
    for place, own in ((0, near), (3, far)):
        statistics[COLUMNS.column_of == place], mean[COLUMNS.column_of == place] = own, SHARES
    statistics[COLUMNS.column_of == 1], mean[COLUMNS.column_of == 1] = bits, SHARES[0]
    found = learned_strengths(statistics, np.full((4, near.shape[1]), 40.0), mean, COLUMNS)
    pair = np.stack([bits, 40 - bits]), np.array([SHARES[0], 1 - SHARES[0]])
    for place, (counts, shares) in {0: (near, SHARES), 1: pair, 3: (far, SHARES)}.items():
        best = CANDIDATES[np.argmax([log_likelihood(s, counts, shares) for s in CANDIDATES])]
        assert found[place] == best
    assert found[2] == 1  # A real column has none.
    assert found[0] > found[3]  # Components alike are drawn to each other.


def test_the_strength_is_the_likeliest(global_random_seed):
    check_strengths(global_random_seed)


def test_a_forgotten_normaliser_is_caught(global_random_seed, monkeypatch):
    def forgetful(strength, counts, shares):
        own = strength * shares[:, None]
        return float((gammaln(own + counts) - gammaln(own)).sum())

    monkeypatch.setattr(strengths, "_log_likelihood", forgetful)
    with pytest.raises(AssertionError):
        check_strengths(global_random_seed)


def test_a_column_that_tells_groups_keeps_them_apart(global_random_seed):
    """Two names of one thing agree in drawn rows, beside a column that has nothing to do with them."""
    rng = np.random.default_rng(global_random_seed)
    thing = rng.integers(0, 12, 3000)
    rows = np.column_stack([thing, 11 - thing, rng.integers(0, 30, 3000)]).astype(float)
    schema = likely.Schema.infer(rows, kinds=dict.fromkeys(range(3), "categorical"))
    broken = []
    for pseudo_count in (None, 1.0):
        model = likely.Mixture(40, pseudo_count=pseudo_count, schema=schema, random_state=0).fit(rows)
        drawn = model.sample(4000, random_state=1)
        broken.append(np.mean(drawn[:, 0] + drawn[:, 1] != 11))
    assert broken[0] < broken[1] / 2
