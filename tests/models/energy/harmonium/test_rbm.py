"""RBM as a model: learning to the likelihood's maximum, evidence of every kind, holes, files, bad input."""

import numpy as np
import polars
import pytest
from scipy import optimize
from scipy.special import logsumexp

import likely
from likely.models.energy.harmonium import answers as inference
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.learning_checks import check_frequencies

FOUR = likely.columns.Columns(("binary",) * 4, (1,) * 4)
QUICK = {"n_epochs": 5, "n_temperatures": 200, "n_ais_chains": 32, "n_sweeps": 20, "random_state": 0}


def copies(n, seed):
    """Four noisy copies of two hidden bits, the second and third of one, the others of the other."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (n, 2))[:, [0, 1, 1, 0]]
    return np.where(rng.random(bits.shape) < 0.1, 1 - bits, bits).astype(float)


def best_mean_log_prob(rows, n_hidden, seed):
    """Maximum of the exact likelihood, in NumPy, from several starts."""
    table, hidden = brute_force.all_rows(FOUR), brute_force.hidden_states(n_hidden)
    counts = np.bincount(brute_force.row_number(rows, table), minlength=len(table)) / len(rows)

    def loss(theta):
        w, b, c = np.split(theta, [4 * n_hidden, 4 * n_hidden + 4])
        logs = table @ w.reshape(4, n_hidden) @ hidden.T + (table @ b)[:, None] + hidden @ c
        p = logsumexp(logs, axis=1)
        return -(counts @ p - logsumexp(p))

    rng = np.random.default_rng(seed)
    starts = rng.normal(size=(3, 5 * n_hidden + 4))
    return -min(optimize.minimize(loss, start, method="L-BFGS-B").fun for start in starts)


@pytest.fixture(scope="module")
def tiny():
    """Rows with strong dependence, and a model fitted to them."""
    rows = copies(2000, 0)
    model = likely.RBM(2, n_epochs=60, n_chains=500, random_state=0).fit(rows)
    return model, rows


def test_persistent_chains_reach_the_likelihoods_maximum(tiny):
    model, rows = tiny
    best = best_mean_log_prob(rows, 2, 0)
    base = likely.Independent().fit(rows).score(rows)
    assert best - base > 0.2  # there is something to learn
    assert model.score(rows) > best - 0.01
    assert model.score(rows) < best + 1e-5


def test_exact_evidence_sums_to_one(tiny):
    model, _ = tiny
    evidence = model.evidence(brute_force.all_rows(FOUR))
    assert evidence.kind == "exact"
    assert np.exp(evidence.values).sum() == pytest.approx(1.0, abs=1e-5)


def test_samples_have_the_exact_probabilities(tiny):
    model, _ = tiny
    table = brute_force.all_rows(FOUR)
    drawn = model.sample(20_000, random_state=1)
    check_frequencies(
        np.bincount(brute_force.row_number(drawn, table), minlength=16), np.exp(model.score_samples(table))
    )


def test_holes_are_marginals(tiny):
    model, _ = tiny
    table = brute_force.all_rows(FOUR)
    p = np.exp(model.score_samples(table))
    row = np.array([[1.0, np.nan, 0.0, np.nan], [np.nan] * 4])
    agree = (table[:, 0] == 1) & (table[:, 2] == 0)
    np.testing.assert_allclose(model.score_samples(row), [np.log(p[agree].sum()), 0.0], atol=1e-5)
    mean = model.condition(row[:1]).mean()
    np.testing.assert_allclose(mean[0], p[agree] @ table[agree] / p[agree].sum(), atol=1e-5)


def test_a_row_with_holes_alone_has_the_bits_it_has_among_others(tiny):
    model, rows = tiny
    holes = np.where(np.arange(4)[None] == np.arange(40)[:, None] % 4, np.nan, rows[:40])
    np.testing.assert_array_equal(model.score_samples(holes[:1]), model.score_samples(holes)[:1])
    np.testing.assert_array_equal(model.condition(holes[:1]).mean(), model.condition(holes).mean()[:1])


def test_contrastive_divergence_learns_too(tiny):
    _, rows = tiny
    other = likely.RBM(2, objective="cd", n_gibbs_steps=5, n_epochs=20, random_state=0).fit(rows)
    assert other.score(rows) > likely.Independent().fit(rows).score(rows) + 0.1
    assert other.params_.chains.any()


def digits_model(**changes):
    digits = likely.datasets.load("digits")
    return likely.RBM(32, schema=digits.schema, **QUICK | changes).fit(digits.train[:200]), digits


@pytest.fixture(scope="module")
def large():
    """A machine beyond enumeration."""
    return digits_model()


def test_evidence_is_an_interval(large):
    model, digits = large
    evidence = model.evidence(digits.test[:50])
    assert evidence.kind == "estimate"
    assert (evidence.lower <= evidence.values).all()
    assert (evidence.values == evidence.upper).all()
    assert evidence.replicates.shape == (50, 16)
    np.testing.assert_allclose(evidence.replicates.mean(axis=1), evidence.values, rtol=1e-6)
    assert (evidence.stderr > 0).all()
    assert "reverse AIS" in evidence.method


def test_evidence_is_a_function_of_the_row_and_the_seed(large):
    model, digits = large
    rows = digits.test[:12].astype(float)
    rows[::3, :20] = np.nan
    whole = model.evidence(rows)
    part = model.evidence(rows[[9, 2, 3]])
    np.testing.assert_array_equal(part.values, whole.values[[9, 2, 3]])
    np.testing.assert_array_equal(part.lower, whole.lower[[9, 2, 3]])
    again, _ = digits_model()
    np.testing.assert_array_equal(again.evidence(rows[:3]).values, whole.values[:3])


def test_a_hole_costs_no_exactness(large):
    """A row with one hole has the sum of two complete rows' probabilities, whatever log Z is: in all three figures."""
    model, digits = large
    row = digits.test[:1].astype(float)
    both = np.repeat(row, 2, axis=0)
    both[:, 27] = [0, 1]
    row[0, 27] = np.nan
    evidence, complete = model.evidence(row), model.evidence(both)
    # Single precision: some hundred terms of a few nats each, whose rounding adds up to less than 1e-5.
    for name in ("values", "lower", "upper"):
        np.testing.assert_allclose(getattr(evidence, name)[0], logsumexp(getattr(complete, name)), rtol=0, atol=1e-5)
    np.testing.assert_allclose(evidence.stderr, complete.stderr[:1], rtol=1e-5)  # that of log Z alone
    assert model.evidence(np.full((1, 64), np.nan)).values[0] == 0.0


def test_few_chains_and_rows_with_holes_have_as_many_replicates():
    rows = np.random.default_rng(0).integers(0, 2, (30, 30)).astype(float)
    model = likely.RBM(25, **QUICK | {"n_ais_chains": 4}).fit(rows)
    rows[0, :2] = rows[1, :20] = np.nan
    evidence = model.evidence(rows[:3])
    assert evidence.replicates.shape == (3, 4)
    assert (evidence.lower <= evidence.upper).all()


def test_log_partition_is_computed_once_and_again_after_a_fit(large, monkeypatch):
    model, digits = large
    calls = []
    original = inference.Sampled.log_partition
    monkeypatch.setattr(inference.Sampled, "log_partition", lambda self, key: calls.append(1) or original(self, key))
    model.evidence(digits.test[:3])
    model.evidence(digits.test[3:5])
    assert not calls
    model.params_ = model.params_.__class__(*(getattr(model.params_, f) for f in vars(model.params_)))
    model.evidence(digits.test[:3])
    assert len(calls) == 1


def test_everything_works_with_holes(large):
    model, digits = large
    rows = digits.test[:6].astype(float)
    rows[:, 32:] = np.nan
    filled = model.impute(rows)
    assert set(np.unique(filled)) <= {0, 1}
    np.testing.assert_array_equal(filled[:, :32], rows[:, :32])
    codes = model.transform(rows)
    assert codes.shape == (6, 32)
    assert ((codes > 0) & (codes < 1)).all()
    assert not np.isnan(model.denoise(rows)).any()
    assert model.inverse_transform(codes).shape == (6, 64)
    draws = model.condition(rows).sample(3)
    assert len(draws) == 3
    np.testing.assert_array_equal(draws[0][:, :32], rows[:, :32])


def mixed_table(rng, n=300):
    group = rng.integers(0, 2, n)
    return polars.DataFrame(
        {
            "height": rng.normal(170 + 12 * group, 5),
            "visits": rng.poisson(1 + 5 * group),
            "colour": np.where(
                rng.random(n) < 0.2 + 0.6 * group, "red", np.where(rng.random(n) < 0.5, "blue", "green")
            ),
            "member": rng.random(n) < 0.1 + 0.8 * group,
        }
    )


def test_mixed_tables_with_holes(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    train, test = mixed_table(rng), mixed_table(rng)
    train = train.with_columns(
        height=polars.when(polars.Series(rng.random(300) < 0.2)).then(None).otherwise(polars.col("height"))
    )
    # Visits, a mixture of rates, are read as 13 bins, each of which is rare: they learn as fast as the other columns.
    model = likely.RBM(6, n_epochs=40, random_state=global_random_seed).fit(train)
    base, truth = likely.Independent().fit(train), likely.Mixture(2, random_state=0).fit(train)
    assert model.evidence(test).kind == "exact"
    assert model.score(test) - base.score(test) > 0.6 * (truth.score(test) - base.score(test)) > 0.3
    holes = test.with_columns(visits=polars.lit(None, dtype=polars.Int64))
    assert model.impute(holes).columns == test.columns
    assert model.sample(5).columns == test.columns


def test_save_and_load(tmp_path, large):
    model, digits = large
    model.save(tmp_path / "machine.likely")
    other = likely.load(tmp_path / "machine.likely")
    np.testing.assert_array_equal(other.params_.chains, model.params_.chains)
    np.testing.assert_array_equal(other.score_samples(digits.test[:5]), model.score_samples(digits.test[:5]))
    assert other.n_parameters_ == 64 * 32 + 64 + 32


def test_resumed_training_gives_the_same_bits(tmp_path):
    digits = likely.datasets.load("digits")
    model = likely.RBM(8, n_epochs=4, random_state=0)
    whole = model.fit(digits.train[:200]).params_
    model.fit(digits.train[:200], checkpoint=likely.Checkpoint(tmp_path / "run", every_steps=3))
    resumed = likely.RBM(8, n_epochs=4, random_state=0).fit(digits.train[:200], resume=tmp_path / "run").params_
    np.testing.assert_array_equal(whole.weights, resumed.weights)
    np.testing.assert_array_equal(whole.chains, resumed.chains)


def test_streams_and_growing_steps_and_every_knob():
    digits = likely.datasets.load("digits")
    model = likely.RBM(
        8,
        n_gibbs_steps=(1, 4),
        centring=False,
        optimizer="adam",
        learning_rate=1e-3,
        schedule="cosine",
        weight_decay=1e-4,
        averaging=0.99,
        gradient_clip=10.0,
        **QUICK,
    ).fit(digits.train[:100])
    assert np.isfinite(model.score(digits.test))
    assert len(model.history_["free_energy_gap"]) == 5


@pytest.mark.parametrize("wrong", [0, (1,), (1, 0), ("a", 2), 1.5])
def test_wrong_numbers_of_steps_are_refused(wrong):
    with pytest.raises(ValueError, match="n_gibbs_steps"):
        likely.RBM(2, n_gibbs_steps=wrong).fit(np.eye(4))
