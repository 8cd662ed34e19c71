"""DBM as a model: every way to start, exact and bounded evidence, holes, one layer, bad input."""

import numpy as np
import pytest
from scipy import stats

import likely
from likely.models.energy.harmonium import answers as inference
from likely.models.energy.layered.machine import LayeredParams
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.learning_checks import ALPHA, check_frequencies
from tests.models.energy.layered.layered_checks import dressed

FOUR = likely.columns.Columns(("binary",) * 4, (1,) * 4)
QUICK = {"n_epochs": 3, "n_temperatures": 200, "n_ais_chains": 32, "n_sweeps": 20, "random_state": 0}


def copies(n, seed):
    """Four noisy copies of two hidden bits."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (n, 2))[:, [0, 1, 1, 0]]
    return np.where(rng.random(bits.shape) < 0.1, 1 - bits, bits).astype(float)


@pytest.fixture(scope="module", params=[True, "lowest", False], ids=str)
def tiny(request):
    rows = copies(1000, 0)
    options = {"n_epochs": 40, "learning_rate": 0.2, "n_chains": 200, "random_state": 0}
    return likely.DBM((3, 2), pretraining=request.param, **options).fit(rows), rows


def test_it_learns_and_its_probabilities_sum_to_one(tiny):
    model, rows = tiny
    table = brute_force.all_rows(FOUR)
    evidence = model.evidence(table)
    assert evidence.kind == "exact"
    assert np.exp(evidence.values).sum() == pytest.approx(1.0, abs=1e-5)
    # the entropy of the rows is the most that any model reaches on them
    shares = np.bincount(brute_force.row_number(rows, table), minlength=16) / len(rows)
    best = float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
    base = likely.Independent().fit(rows).score(rows)
    assert base + 0.9 * (best - base) < model.score(rows) < best + 1e-5


def test_samples_have_the_exact_probabilities(tiny):
    model, _ = tiny
    table = brute_force.all_rows(FOUR)
    drawn = model.sample(20_000, random_state=1)
    counts = np.bincount(brute_force.row_number(drawn, table), minlength=16)
    check_frequencies(counts, np.exp(model.score_samples(table)))


def test_the_bound_lies_below_the_exact_evidence(tiny, monkeypatch):
    """The same machine, measured as if it were too large to enumerate."""
    model, _ = tiny
    table = brute_force.all_rows(FOUR)
    table[:4, 1] = np.nan
    exact = model.evidence(table).values
    monkeypatch.setattr(inference.enumeration, "smaller_side", lambda *_: None)
    large = dressed(likely.DBM((3, 2), **QUICK), model, model.params_)
    evidence = large.evidence(table)
    limit = stats.t.isf(ALPHA, evidence.replicates.shape[1] - 1)
    error = limit * evidence.stderr
    assert (evidence.lower <= exact + error).all()
    # The logarithm of a mean of weights loses half their variance over their number, which is the squared error here;
    # twice that leaves room for the next order.
    loss, noise = np.mean(evidence.stderr**2), limit * evidence.monte_carlo_stderr
    assert np.mean(exact - evidence.values) < loss + noise
    large.n_importance = None
    plain = large.evidence(table)
    assert (plain.values <= exact + error).all()
    assert plain.values.mean() < evidence.values.mean() + error.mean()
    assert (plain.upper == np.inf).all()


@pytest.fixture(scope="module")
def large():
    digits = likely.datasets.load("digits")
    return likely.DBM((24, 24), schema=digits.schema, pretraining=False, **QUICK).fit(digits.train[:200]), digits


def test_evidence_beyond_enumeration_is_a_labelled_bound(large):
    model, digits = large
    rows = digits.test[:12].astype(float)
    rows[::3, :20] = np.nan
    rows[11] = np.nan
    evidence = model.evidence(rows)
    assert evidence.kind in ("lower", "estimate")
    assert (evidence.lower <= evidence.values).all()
    assert np.isinf(evidence.upper[:11]).all()
    assert evidence.values[11] == evidence.upper[11] == 0
    assert "64 samples of the mean field" in evidence.method
    assert "reverse AIS" in evidence.method
    part = model.evidence(rows[[9, 2, 3]])
    np.testing.assert_array_equal(part.values, evidence.values[[9, 2, 3]])
    np.testing.assert_allclose(evidence.replicates.mean(axis=1), evidence.values, rtol=1e-6, atol=1e-6)


def test_everything_works_beyond_enumeration(large):
    model, digits = large
    rows = digits.test[:6].astype(float)
    rows[:, 32:] = np.nan
    filled = model.impute(rows)
    assert set(np.unique(filled)) <= {0, 1}
    np.testing.assert_array_equal(filled[:, :32], rows[:, :32])
    codes = model.transform(rows)
    assert codes.shape == (6, 24)
    assert model.inverse_transform(codes).shape == model.denoise(rows).shape == model.sample(6).shape == (6, 64)
    assert len(model.condition(rows).sample(2)) == 2


def test_with_one_layer_it_is_an_rbm(x64):
    rows = copies(200, 1)
    rbm = likely.RBM(3, n_epochs=2, random_state=0).fit(rows)
    old = rbm.params_
    params = LayeredParams((old.weights,), old.visible_bias, (old.hidden_bias,), (old.chains,))
    model = dressed(likely.DBM((3,)), rbm, params)
    rows[:30, 2] = np.nan
    np.testing.assert_allclose(model.score_samples(rows), rbm.score_samples(rows), rtol=1e-8)
    np.testing.assert_allclose(model.condition(rows).mean(), rbm.condition(rows).mean(), rtol=1e-8)
    np.testing.assert_allclose(model.transform(rows[30:]), rbm.transform(rows[30:]), rtol=1e-8)


def test_the_size_of_the_top_layer_is_the_codes_width():
    model = likely.DBM([8, 4])
    assert model.n_components == 4
    model.n_components = 3
    assert model.get_params()["layers"] == (8, 3)


@pytest.mark.parametrize("layers", [(), (4, 0), (4, -1), (3.0, 2), ("a",)])
def test_wrong_layers_are_refused(layers):
    for model in (likely.DBM(layers), likely.DBN(layers)):
        with pytest.raises(ValueError, match="`layers` must hold the sizes of one hidden layer or more"):
            model.fit(np.eye(4))
