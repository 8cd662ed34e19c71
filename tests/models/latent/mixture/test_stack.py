"""A stack is the weighted sum of its members: evidence, draws, cells; its weights, and what it refuses."""

import numpy as np
import polars as pl
import pytest

import likely
from likely.contract.evidence import Evidence
from likely.models.latent.mixture.stack import learn_weights, mixed_evidence
from likely.schema import SchemaError
from tests.contracts.table import binary_rows, mixed_frame
from tests.models.latent.mixture.stack_checks import all_bits, check_weighted_sum


@pytest.fixture(scope="module")
def bits():
    """Two Bernoulli mixtures of the same bits, and their stack."""
    members = [likely.Mixture(k, n_init=1, max_iter=20, random_state=k).fit(binary_rows(k, 150)) for k in (1, 3)]
    return members, likely.Stack(members, random_state=0).fit(binary_rows(9, 100))


@pytest.fixture(scope="module")
def table():
    """A stack of models that read rounded numbers as bins and as reals, of a table with holes."""
    rng = np.random.default_rng(0)
    age = rng.integers(20, 60, 300)
    frame = pl.DataFrame({"age": age, "pay": np.round(age * 10 + rng.normal(0, 40, 300)), "size": rng.normal(size=300)})
    members = [likely.Mixture(2, n_init=1, max_iter=20), likely.FactorAnalysis(1, max_iter=20)]
    return frame, likely.Stack(members, random_state=0).fit(frame)


def test_two_bernoulli_mixtures_are_their_weighted_sum(bits):
    check_weighted_sum(bits[1], bits[0])


def test_probabilities_sum_to_one_and_holes_are_sums(bits):
    stack = bits[1]
    rows = all_bits(6)
    probabilities = np.exp(stack.score_samples(rows))
    np.testing.assert_allclose(probabilities.sum(), 1, rtol=1e-6)
    row = np.array([[1, np.nan, 0, np.nan, np.nan, 1]])
    agree = (rows[:, [0, 2, 5]] == row[0, [0, 2, 5]]).all(axis=1)
    np.testing.assert_allclose(np.exp(stack.score(row)), probabilities[agree].sum(), rtol=1e-5)
    conditional = stack.condition(row)
    assert conditional.is_exact
    expected = (probabilities[agree, None] * rows[agree]).sum(axis=0) / probabilities[agree].sum()
    np.testing.assert_allclose(conditional.mean()[0], expected, atol=1e-5)
    draws = np.asarray(conditional.sample(2000, random_state=1))[:, 0]
    error = np.sqrt(expected * (1 - expected) / 2000)
    assert (np.abs(draws.mean(axis=0) - expected) <= 4.5 * error).all()


def test_draws_come_as_often_as_they_are_probable(bits, global_random_seed):
    drawn = bits[1].sample(4000, random_state=global_random_seed)
    p = np.exp(bits[1].score_samples(all_bits(6)))
    counts = np.bincount((drawn @ 2 ** np.arange(5, -1, -1)).astype(int), minlength=64)
    assert (np.abs(counts / 4000 - p) <= 5 * np.sqrt(p * (1 - p) / 4000) + 1 / 4000).all()
    assert bits[1].sampling_.is_exact


def test_weights_are_those_of_greatest_likelihood(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    log_p = rng.normal(size=(200, 2)) * 2
    weights, curve = learn_weights(log_p, 5000)
    line = np.linspace(1e-4, 1 - 1e-4, 4001)
    mean = np.log(np.outer(np.exp(log_p[:, 0]), line) + np.outer(np.exp(log_p[:, 1]), 1 - line)).mean(axis=0)
    assert curve[-1] >= mean.max() - 1e-6
    assert (np.diff(curve) >= -1e-12).all()
    assert abs(weights.sum() - 1) < 1e-12


def test_the_kind_is_that_of_the_weakest_member():
    exact = Evidence.exact([-1.0, -2.0], method="a")
    bound = Evidence.lower_bound([-1.5, -1.5], [[-1.4, -1.6], [-1.5, -1.5]], method="b")
    assert mixed_evidence([exact, exact], np.array([0.5, 0.5])).kind == "exact"
    both = mixed_evidence([exact, bound], np.array([0.25, 0.75]))
    assert both.kind == "lower"
    np.testing.assert_allclose(both.values, np.log(0.25 * np.exp(exact.values) + 0.75 * np.exp(bound.values)))
    share = 0.75 * np.exp(-1.5) / np.exp(both.values[0])
    np.testing.assert_allclose(both.replicates[0] - both.values[0], [0.1 * share, -0.1 * share])
    assert mixed_evidence([exact, bound], np.array([1.0, 0.0])).kind == "exact"


def test_members_that_read_a_column_otherwise(table, tmp_path):
    """Bins and intervals of one number are both probabilities of it; answers survive a file."""
    frame, stack = table
    rows = frame[:20]
    found, members = stack.evidence(rows), [member.evidence(rows) for member in stack.members_]
    assert found.kind == "lower"
    expected = np.log(sum(w * np.exp(e.values) for w, e in zip(stack.weights_, members, strict=True)))
    np.testing.assert_allclose(found.values, expected, rtol=1e-9)
    holes = rows.with_columns(pl.when(pl.int_range(20) % 2 == 0).then(pl.col("age")).alias("age"))
    conditional = stack.condition(holes)
    mean, std = conditional.expected()[:, 0], conditional.std()[:, 0]
    draws = np.array([frame["age"].to_numpy() for frame in conditional.sample(300, random_state=0)], float)
    off = np.abs(draws.mean(axis=0) - mean)[1::2]
    assert (off < 5 * (std[1::2] / np.sqrt(300) + conditional.stderr()[1::2, 0]) + 1e-9).all()
    filled = stack.impute(holes)["age"].to_numpy()
    assert (filled == np.rint(filled)).all()
    stack.save(tmp_path / "stack.likely")
    again = likely.load(tmp_path / "stack.likely")
    np.testing.assert_array_equal(again.score_samples(rows), found.values)
    assert again.impute(holes).equals(stack.impute(holes))
    assert again.n_parameters_ == stack.n_parameters_ == 2 + sum(m.n_parameters_ for m in stack.members_)


def test_mixed_columns_with_holes_by_names():
    frame = mixed_frame(0)
    stack = likely.Stack(["independent", likely.Mixture(2, n_init=1, max_iter=20)], random_state=0).fit(frame)
    assert stack.sample(5).columns == frame.columns
    assert stack.impute(frame).null_count().sum_horizontal()[0] == 0
    np.testing.assert_allclose(stack.condition(frame).probabilities("city").sum(axis=1), 1, atol=1e-5)


def test_times_are_filled_in_among_those_that_were_seen():
    days = np.datetime64("2022-01-01") + np.random.default_rng(0).integers(0, 60, 120)
    frame = pl.DataFrame({"day": pl.Series(days.astype("datetime64[D]")), "x": np.arange(120) % 7 + 0.5})
    stack = likely.Stack(["independent"], random_state=0).fit(frame)
    filled = stack.impute(frame[:3].with_columns(pl.lit(None, pl.Date).alias("day")))["day"]
    assert filled.is_between(frame["day"].min(), frame["day"].max()).all()


def test_refusals(bits):
    members, _ = bits
    other = likely.Independent().fit(binary_rows(0)[:, :3])
    with pytest.raises(SchemaError, match=r"fitted to other columns than the rest \(column 'x3'\)"):
        likely.Stack([members[0], other]).fit(binary_rows(0))
    density = likely.FactorAnalysis(1, max_iter=5).fit(binary_rows(0))
    with pytest.raises(SchemaError, match="on another measure"):
        likely.Stack([members[0], density]).fit(binary_rows(0))
    with pytest.raises(SchemaError, match="on another measure"):
        likely.Stack(["independent", "factoranalysis"]).fit(binary_rows(0))
    with pytest.raises(TypeError, match="GAN has no likelihood"):
        likely.Stack(["gan"]).fit(binary_rows(0))
    with pytest.raises(TypeError, match=r"must be a likely\.Model or the name of one, got 3"):
        likely.Stack([3]).fit(binary_rows(0))
    with pytest.raises(ValueError, match="must be a list of models"):
        likely.Stack([]).fit(binary_rows(0))
