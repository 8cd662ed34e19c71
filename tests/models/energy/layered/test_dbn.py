"""DBN: sums, bounds and samples against brute force; tied weights; learning; evidence of every kind."""

import jax
import jax.numpy as jnp
import numpy as np
import polars
import pytest
from scipy.special import logsumexp

import likely
from likely.models.energy.harmonium.answers import answers
from likely.models.energy.layered.dbn import levels as dbn_levels
from likely.models.energy.layered.dbn import network as dbn_network
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.learning_checks import check_frequencies, check_mean
from tests.models.energy.layered.dbn_checks import check_sums, check_tied, log_rows, network
from tests.models.energy.layered.layered_checks import TINY, check_mean_weight, dressed

QUICK = {
    "n_epochs": 3,
    "n_importance": 32,
    "n_temperatures": 200,
    "n_ais_chains": 32,
    "n_sweeps": 20,
    "random_state": 0,
}


@pytest.mark.parametrize("layers", [(2, 3), (3, 2, 2)])
def test_enumeration_is_exact(layers, x64, global_random_seed):
    check_sums(
        lambda p, x, observed: dbn_network.exact_sums(p, x, observed, TINY)[0],
        network(TINY, layers, global_random_seed),
        TINY,
    )


@pytest.mark.parametrize("layers", [(2, 3), (3, 2, 2)])
def test_weights_average_to_the_exact_sum(layers, x64, global_random_seed):
    params = network(TINY, layers, global_random_seed)
    rows, logs = log_rows(params, TINY)
    log_z = answers(params.top, likely.columns.Columns(("binary",) * layers[-2], (1,) * layers[-2]), None)
    log_z = log_z.log_partition(None).low
    holes = rows.copy()
    holes[:, 1] = np.nan
    pairs = [logsumexp(logs[(rows[:, [0, 2]] == row[[0, 2]]).all(axis=1)]) for row in rows]
    for given, exact in ((rows, logs), (holes, pairs)):
        x, observed = jnp.nan_to_num(given), jnp.asarray(~np.isnan(given))
        key = jax.random.key(global_random_seed)
        weighted = dbn_network.weigh_rows(key, params, x, observed, TINY, 4000, conditional=True)
        check_mean_weight(*(np.asarray(a) for a in (weighted.log_mean, weighted.replicates)), exact + log_z)
    # The conditional's mean is self-normalised: its bias is of order 1/4000, a tenth of the error of sixteen runs.
    runs = [
        dbn_network.weigh_rows(k, params, x, observed, TINY, 4000, conditional=True) for k in jax.random.split(key, 16)
    ]
    check_mean(np.stack([run.average for run in runs]), dbn_network.exact_sums(params, x, observed, TINY)[1])


def test_a_pass_down_from_the_top_gives_samples(x64, global_random_seed):
    params = network(TINY, (2, 2, 3), global_random_seed)
    rows, logs = log_rows(params, TINY)
    top_key, down_key = jax.random.split(jax.random.key(global_random_seed))
    two = likely.columns.Columns(("binary",) * 2, (1,) * 2)
    drawn = answers(params.top, two, None).sample(top_key, 20_000)
    cells = dbn_network.draw_down(down_key, params, jnp.asarray(drawn), TINY)
    check_frequencies(np.bincount(brute_force.row_number(cells, rows), minlength=len(rows)), np.exp(logs))


def test_exact_draws_of_holes(x64, global_random_seed):
    params = network(TINY, (2, 3), global_random_seed)
    rows, logs = log_rows(params, TINY)
    x, observed = jnp.array([[1.0, 0.0, 0.0]]), jnp.array([[True, False, False]])
    drawn = dbn_network.exact_draws(jax.random.key(global_random_seed)[None], params, 20_000, x, observed, TINY)[:, 0]
    drawn = jnp.where(observed, x, drawn)
    agree = rows[:, 0] == 1
    check_frequencies(
        np.bincount(brute_force.row_number(drawn, rows), minlength=len(rows)), np.where(agree, np.exp(logs), 0)
    )


def test_a_tied_start_changes_nothing(x64, global_random_seed):
    for n_extra in (0, 2):
        check_tied(dbn_levels.tied, TINY, n_extra, global_random_seed)


# ------------------------------------------------------------------------------------------ as a model
def copies(n, seed):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (n, 2))[:, [0, 1, 1, 0]]
    return np.where(rng.random(bits.shape) < 0.1, 1 - bits, bits).astype(float)


@pytest.fixture(scope="module")
def tiny():
    rows = copies(1000, 0)
    return likely.DBN((3, 4), n_epochs=40, n_chains=200, random_state=0).fit(rows), rows


def test_it_learns_and_its_probabilities_sum_to_one(tiny):
    model, rows = tiny
    table = brute_force.all_rows(likely.columns.Columns(("binary",) * 4, (1,) * 4))
    evidence = model.evidence(table)
    assert evidence.kind == "exact"
    assert np.exp(evidence.values).sum() == pytest.approx(1.0, abs=1e-5)
    shares = np.bincount(brute_force.row_number(rows, table), minlength=16) / len(rows)
    best = float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    base = likely.Independent().fit(rows).score(rows)
    assert base + 0.9 * (best - base) < model.score(rows) < best + 1e-5
    assert model.history_["stage"] == [1] * 40 + [2] * 40 + [3] * 10


def test_with_one_layer_it_is_an_rbm(x64):
    rows = copies(200, 1)
    rbm = likely.RBM(3, n_epochs=2, random_state=0).fit(rows)
    model = dressed(likely.DBN((3,)), rbm, dbn_levels.assembled([rbm.params_]))
    rows[:30, 2] = np.nan
    np.testing.assert_allclose(model.score_samples(rows), rbm.score_samples(rows), rtol=1e-8)
    np.testing.assert_allclose(model.condition(rows).mean(), rbm.condition(rows).mean(), rtol=1e-8)
    np.testing.assert_allclose(model.transform(rows), rbm.transform(rows), rtol=1e-8)
    assert model.sample(4).shape == (4, 4)


@pytest.fixture(scope="module")
def large():
    digits = likely.datasets.load("digits")
    model = likely.DBN((24, 70), schema=digits.schema, n_tuning_epochs=1, **QUICK)
    return model.fit(digits.train[:200]), digits


def test_evidence_beyond_enumeration_is_a_labelled_bound(large):
    model, digits = large
    rows = digits.test[:12].astype(float)
    rows[::3, :20] = np.nan
    rows[11] = np.nan
    evidence = model.evidence(rows)
    assert evidence.kind in ("lower", "estimate")
    assert (evidence.lower <= evidence.values).all()
    assert np.isinf(evidence.upper[:11]).all()
    assert evidence.values[11] == 0
    assert "32 samples of the way up" in evidence.method
    part = model.evidence(rows[[9, 2, 3]])
    np.testing.assert_array_equal(part.values, evidence.values[[9, 2, 3]])
    np.testing.assert_allclose(evidence.replicates.mean(axis=1), evidence.values, rtol=1e-6, atol=1e-6)


def test_everything_works_beyond_enumeration(large):
    model, digits = large
    rows = digits.test[:6].astype(float)
    rows[:, 32:] = np.nan
    filled = model.impute(rows)
    np.testing.assert_array_equal(filled[:, :32], rows[:, :32])
    codes = model.transform(rows)
    assert codes.shape == (6, 70)
    assert model.inverse_transform(codes).shape == model.denoise(rows).shape == model.sample(6).shape == (6, 64)
    draws = model.condition(rows).sample(2)
    assert set(np.unique(draws)) <= {0, 1}
    assert "importance resampling of 32 codes" in model.condition(rows).method


def test_a_top_that_can_be_enumerated_gives_a_lower_bound(large):
    fitted, digits = large
    levels = dbn_levels.untrained(jax.random.key(0), fitted.columns_, (24, 6), 10)
    model = dressed(likely.DBN((24, 6), n_importance=32), fitted, dbn_levels.assembled(levels))
    evidence = model.evidence(digits.test[:20])
    assert evidence.kind == "lower"
    assert (evidence.stderr > 0).all()


def test_mixed_columns_with_holes_are_tuned_in_their_units(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    group = rng.integers(0, 2, 200)
    table = polars.DataFrame(
        {
            "height": rng.normal(170 + 12 * group, 5),
            "visits": rng.poisson(1 + 5 * group),
            "colour": np.where(rng.random(200) < 0.2 + 0.6 * group, "red", "blue"),
        }
    )
    table = table.with_columns(
        height=polars.when(polars.Series(rng.random(200) < 0.2)).then(None).otherwise(polars.col("height"))
    )
    schema = likely.Schema.infer(table, kinds={"visits": "count"})
    settings = {"n_epochs": 100, "n_tuning_epochs": 20, "random_state": global_random_seed, "schema": schema}
    model = likely.DBN((4, 3), **settings).fit(table)
    assert model.score(table) > likely.Independent(schema=schema).fit(table).score(table) + 0.2
    squares = model.columns_.is_quadratic
    assert not np.asarray(model.params_.down[0])[squares].any()
    assert not np.asarray(model.params_.up[0])[squares].any()
    assert (np.asarray(model.params_.down_biases[0])[squares] < 0).all()
