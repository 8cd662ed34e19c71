"""What chains say of themselves: error, R-hat and effective draws, against NumPy and against enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import likely
from likely.columns import Columns
from likely.models.energy.harmonium import answers as harmonium
from likely.models.energy.harmonium.machine import RBMParams
from likely.models.energy.layered.machine import bipartite, places
from likely.models.energy.normaliser.schedule import Settings
from likely.models.energy.normaliser.watched import watch_chains
from likely.montecarlo import collect_chains
from tests.models.energy.harmonium import brute_force
from tests.models.energy.layered.layered_checks import dressed, layered
from tests.models.energy.normaliser.watched_checks import check_right_or_unsure, split_r_hat

TEN = Columns(("binary",) * 10, (1,) * 10)


def autoregressive(key, x):
    return 0.7 * x + jax.random.normal(key, x.shape, x.dtype)


@pytest.mark.parametrize("apart", [0.0, 5.0])
def test_figures_are_those_of_the_draws(apart, x64):
    key, n = jax.random.key(0), 40
    start = apart * (jnp.arange(12) % 2)[:, None] + jnp.zeros((12, 3))
    kernel = lambda k, x: apart * (jnp.arange(12) % 2)[:, None] + autoregressive(k, x)  # noqa: E731
    found = watch_chains(key, kernel, start, lambda x: x, n)
    early, late = jax.random.split(key)
    first, state = collect_chains(early, kernel, start, lambda x: x, n // 2)
    second, _ = collect_chains(late, kernel, state, lambda x: x, n // 2)
    draws = np.concatenate([first, second], axis=1)
    np.testing.assert_allclose(found.mean, draws.mean(axis=(0, 1)), rtol=1e-9)
    np.testing.assert_allclose(found.stderr, draws.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(12), rtol=1e-9)
    np.testing.assert_allclose(found.r_hat, split_r_hat(draws), rtol=1e-9)
    assert (found.n_effective <= draws.shape[0] * draws.shape[1]).all()


def test_what_never_moves_is_known_or_not_at_all(x64):
    still = lambda key, x: x  # noqa: E731
    same = watch_chains(jax.random.key(0), still, jnp.ones((4, 2)), lambda x: x, 10)
    assert (same.r_hat == 1).all()
    assert (same.stderr == 0).all()
    other = watch_chains(jax.random.key(0), still, jnp.arange(4.0)[:, None], lambda x: x, 10)
    assert np.isinf(other.r_hat).all()


def test_stated_errors_hold_the_truth(x64, monkeypatch, global_random_seed):
    """Of 60 runs, each cell's mean lies within the 95% interval of its own error about 57 times."""
    monkeypatch.setattr(harmonium, "few_holes", lambda rows, columns: np.zeros(len(rows), bool))
    params = brute_force.machine(brute_force.BINARY, 4, global_random_seed, scale=0.6)
    rows = np.array([[1.0, np.nan, 0.0, np.nan, np.nan, 1.0], [np.nan] * 6])
    exact = np.array([brute_force.conditional_mean(params, row, brute_force.BINARY)[0] for row in rows])
    sampled = harmonium.Sampled(params, brute_force.BINARY, Settings(16, 10, 100))
    keys = jax.random.split(jax.random.key(global_random_seed), 60)
    parts = [sampled.condition(key, rows) for key in keys]
    inside = np.array([np.abs(p.mean - exact) <= stats.t.isf(0.025, 15) * p.stderr for p in parts])
    assert (inside.sum(axis=0)[np.isnan(rows)] >= stats.binom.ppf(1e-6, 60, 0.95)).all()
    assert all((p.stderr[~np.isnan(rows)] == 0).all() for p in parts)
    assert np.mean([p.mixing.is_sure for p in parts]) > 0.9
    assert parts[0].mixing.n_chains == 16


def two_modes(chains_on: bool) -> RBMParams:
    """Ten bits and a hidden unit that switches them all, far too strongly for sweeps to ever switch it back."""
    on = jnp.full((20, 1), chains_on)
    return RBMParams(jnp.full((10, 1), 5.0), jnp.full(10, -2.5), jnp.full(1, -25.0), on)


@pytest.mark.parametrize("chains_on", [True, False])
def test_chains_that_stay_in_their_modes_are_told(chains_on, x64, monkeypatch):
    monkeypatch.setattr(harmonium, "few_holes", lambda rows, columns: np.zeros(len(rows), bool))
    sampled = harmonium.Sampled(two_modes(chains_on), TEN, Settings(16, 10, 50))
    parts = sampled.condition(jax.random.key(0), np.full((1, 10), np.nan))
    assert parts.mixing.unsure.all()
    assert parts.mixing.r_hat[0] > 2
    how = sampled.sampling(jax.random.key(0))
    assert not how.is_exact
    assert how.r_hat > 2
    assert not how.mixing.is_sure


def test_conditionals_of_deep_machines_are_right_or_say_that_they_are_not(x64, monkeypatch, global_random_seed):
    """Machines with strong weights, whose chains hardly move: means may be far off, but then a warning is due."""
    columns = Columns(("binary",) * 4, (1,) * 4)
    rows = np.array([[1.0, np.nan, np.nan, 0.0], [np.nan, 0.0, np.nan, np.nan], [np.nan] * 4])
    monkeypatch.setattr(harmonium, "few_holes", lambda rows, columns: np.zeros(len(rows), bool))
    worst = 0.0
    for seed in range(12):
        view, extended = bipartite(layered(columns, (4, 3), 100 * global_random_seed + seed, scale=4.0), columns)
        own, _ = places(columns, extended)
        wide = np.hstack([rows, np.full((3, 3), np.nan)])
        exact = harmonium.Exact(view, extended, "hidden").condition(None, wide).mean[:, own]
        parts = harmonium.Sampled(view, extended, Settings(16, 10, 50)).condition(jax.random.key(seed), wide)
        check_right_or_unsure(parts.mean[:, own], parts.stderr[:, own], parts.mixing.unsure, exact, 16)
        worst = max(worst, float(np.abs(parts.mean[:, own] - exact).max()))
    assert worst > 0.05  # else nothing was at stake


# ------------------------------------------------------------------ as users see it
@pytest.fixture(scope="module")
def wide_model():
    """An RBM too large to enumerate, with two modes that its chains never leave."""
    rows = (np.random.default_rng(0).random((40, 24)) < 0.5).astype(float)
    model = likely.RBM(24, n_epochs=1, n_sweeps=20, random_state=0).fit(rows)
    weights = jnp.zeros((24, 24)).at[:, 0].set(6.0)
    bias = jnp.zeros(24).at[0].set(-72.0)
    params = RBMParams(weights, jnp.full(24, -3.0), bias, jnp.zeros((20, 24), bool).at[::2, 0].set(True))
    return dressed(likely.RBM(24, n_sweeps=20, random_state=0), model, params)


def test_samples_and_conditionals_warn_with_what_to_raise(wide_model):
    holes = np.full((2, 24), np.nan)
    holes[0, :20] = 1.0  # settled by what is observed
    with pytest.warns(likely.EvidenceWarning, match=r"RBM's conditional .* in 1 of 2 rows .* raise `n_sweeps` from 20"):
        found = wide_model.condition(holes)
    assert not found.is_exact
    assert found.mixing.unsure.tolist() == [False, True]
    assert "16 clamped chains of 40 sweeps, Monte Carlo error at most" in repr(found)
    with pytest.warns(likely.EvidenceWarning, match=r"impute\(X, budget=\d+\)"):
        wide_model.impute(holes)
    with pytest.warns(likely.EvidenceWarning, match=r"RBM's sample .* raise `n_sweeps` from 30 .* sample\(n, budget="):
        wide_model.sample(3, budget=30)
    how = wide_model.sampling_
    assert (how.n_sweeps, how.n_chains, how.is_exact) == (30, 16, False)
    assert "30 sweeps of chains" in str(how)


def test_a_budget_is_sweeps_or_seconds_and_nothing_where_it_is_exact(wide_model):
    holes = np.ones((1, 24))
    holes[0, :12] = np.nan
    assert "chains of 14 sweeps" in wide_model.condition(holes, budget=7).method
    assert wide_model.n_sweeps == 20
    longer = wide_model.condition(holes, budget=1.0).method
    assert int(longer.split()[-2]) >= 64
    small = likely.RBM(3, n_epochs=1, random_state=0).fit((np.arange(12).reshape(4, 3) % 2).astype(float))
    exact = small.condition([[1, np.nan, 0]], budget=5)
    assert exact.is_exact
    assert (exact.stderr() == 0).all()
    assert repr(exact) == "Conditional of 1 unobserved cells in 1 rows: exact"
    with pytest.raises(AttributeError, match="sampling_ is known after a call of sample"):
        _ = small.sampling_
    small.sample(2, budget=3)
    assert small.sampling_.is_exact
    assert (str(small.sampling_), small.sampling_.r_hat, small.sampling_.n_chains) == ("exact", 1.0, None)
    with pytest.raises(ValueError, match="`budget` must be"):
        small.condition([[1, np.nan, 0]], budget=0)
