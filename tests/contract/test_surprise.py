"""Surprise against exact tail probabilities: enumerated, and chi-square."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import likely
from likely.contract.surprise import calibration as module
from likely.contract.surprise.tail import tail_of
from tests.contract.surprise_checks import (
    binary_model,
    check_binomial,
    check_borrowed_shape,
    check_uniform,
    enumerated_tails,
    erased,
    gaussian_model,
    gaussian_of,
    holed_states,
)

N = 2000


@pytest.fixture(scope="module")
def bits():
    return binary_model(0)


@pytest.fixture(scope="module")
def gaussian():
    return gaussian_model(0)


def test_tails_of_bits_are_those_of_enumeration(bits, global_random_seed):
    rows = holed_states()
    found = bits.surprise(rows, n_draws=N, random_state=global_random_seed)
    check_binomial(found.tail, enumerated_tails(bits, rows), N)
    np.testing.assert_allclose(found.evidence.values, bits.score_samples(rows))
    np.testing.assert_allclose(found.stderr, np.sqrt(found.tail * (1 - found.tail) / N))


def test_tails_of_a_gaussian_are_chi_square(gaussian, global_random_seed):
    mean, covariance = gaussian_of(gaussian)
    rows = erased(gaussian.sample(40, random_state=global_random_seed + 1), global_random_seed)
    exact = []
    for row in rows:
        seen = ~np.isnan(row)
        away = (row - mean)[seen]
        exact.append(stats.chi2.sf(away @ np.linalg.solve(covariance[np.ix_(seen, seen)], away), seen.sum()))
    found = gaussian.surprise(rows, n_draws=N, random_state=global_random_seed)
    check_binomial(found.tail, np.array(exact), N)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_tails_of_a_models_own_draws_are_uniform(gaussian, share, global_random_seed):
    rows = erased(gaussian.sample(N, random_state=global_random_seed + 1), global_random_seed, share)
    check_uniform(gaussian.surprise(rows, n_draws=N, random_state=global_random_seed).tail, N)


def test_values_rank_without_ties_beyond_the_draws(gaussian):
    mean, covariance = gaussian_of(gaussian)
    spread, steps = np.sqrt(np.diag(covariance)), np.linspace(3, 12, 50)
    found = gaussian.surprise(mean + steps[:, None] * spread)
    assert (np.diff(found.values) > 0).all()
    assert (found.tail[10:] == 1 / 1001).all()
    np.testing.assert_array_equal(found.top(3), [49, 48, 47])
    # Of a Gaussian, -log p has an exponential tail. Its scale is read off a hundred draws, to a tenth: five errors of
    # that are a half.
    exact = -stats.chi2.logsf(steps**2 * (spread @ np.linalg.solve(covariance, spread)), 3)
    assert (np.abs(found.values / exact - 1)[np.isfinite(exact)] < 0.5).all()


def test_rows_with_holes_are_not_less_odd(gaussian):
    """The same distance from the mean is as odd, however many cells are unobserved; log p alone says otherwise."""
    mean, covariance = gaussian_of(gaussian)
    whole, holed = mean.copy(), np.full(3, np.nan)
    whole[0] += 4 * np.sqrt(covariance[0, 0])
    holed[1] = mean[1] + 4 * np.sqrt(covariance[1, 1])
    found = gaussian.surprise(np.stack([mean, holed, whole]))
    assert found.tail[1] < 0.002 < 0.9 < found.tail[0]


def test_rare_patterns_share_a_shape(gaussian, monkeypatch, global_random_seed):
    """Beyond the cap, tails are as near to those by all draws as the shape that they borrow allows."""
    rows = erased(gaussian.sample(60, random_state=global_random_seed + 1), global_random_seed)
    whole = gaussian.surprise(rows, random_state=global_random_seed)
    monkeypatch.setattr(module, "_MOST_MASKED", 3000)
    found = gaussian.surprise(rows, random_state=global_random_seed)
    few = found.n_draws < 1000
    assert 0 < few.sum() < len(rows)
    assert (found.n_draws[few] == 32).all()
    np.testing.assert_array_equal(found.tail[~few], whole.tail[~few])
    n_cells = (~np.isnan(rows)).sum(axis=1)
    check_borrowed_shape(found.tail[few], whole.tail[few], n_cells[few])
    monkeypatch.setattr(module, "_line", lambda few, reference, like: (np.zeros(len(like)), np.ones(len(like))))
    crude = gaussian.surprise(rows, random_state=global_random_seed)
    with pytest.raises(AssertionError):  # The evidence of another pattern as it is serves nobody.
        check_borrowed_shape(crude.tail[few], whole.tail[few], n_cells[few])
    assert "by 32 draws" in repr(found)


def test_cells_of_a_gaussian_are_its_conditionals(gaussian, global_random_seed):
    mean, covariance = gaussian_of(gaussian)
    rows = gaussian.sample(10, random_state=global_random_seed + 1)
    rows[::2, 1] = np.nan
    found = gaussian.surprise(rows, n_draws=N, random_state=global_random_seed).cells(range(10))
    exact, residual = np.full((2, 10, 3), np.nan)
    for i, row in enumerate(rows):
        seen = np.flatnonzero(~np.isnan(row))
        for j in seen:
            rest = seen[seen != j]
            gain = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, j])
            centre = mean[j] + gain @ (row - mean)[rest]
            deviation = np.sqrt(covariance[j, j] - gain @ covariance[rest, j])
            exact[i, j] = stats.norm.logpdf(row[j], centre, deviation)
            residual[i, j] = (row[j] - centre) / deviation
    np.testing.assert_allclose(found.log_p, exact, atol=5e-3)
    np.testing.assert_array_equal(np.isnan(found.tail), np.isnan(rows))
    seen = ~np.isnan(rows)
    check_binomial(found.tail[seen], stats.chi2.sf(residual[seen] ** 2, 1), N)


def test_the_planted_cell_is_the_reason():
    rng = np.random.default_rng(0)
    size = rng.normal(170, 10, 300)
    frame = pl.DataFrame({"height": size, "weight": size - 100 + rng.normal(0, 4, 300), "age": rng.normal(40, 9, 300)})
    model = likely.Mixture(1, covariance="full", n_init=1, random_state=0).fit(frame)
    planted = frame.with_columns(age=pl.when(pl.int_range(300) == 7).then(140.0).otherwise("age"))
    odd = model.surprise(planted)
    assert odd.top(1).tolist() == [7]
    first, *others = odd.why(7)
    assert (first.column, first.value, str(first)) == ("age", 140.0, "age=140")
    assert first.tail < 0.002 < min(reason.tail for reason in others)
    assert first.log_p < first.expected - 10
    assert len(odd.why(7, 2)) == 2
    table = odd.cells().to_frame()
    assert table["column"][0] == "age"
    assert table["row"].n_unique() == 10
    assert "row 7: age=140" in repr(odd.cells())


def test_a_row_without_an_observed_cell_is_no_surprise(gaussian):
    found = gaussian.surprise(np.full((1, 3), np.nan))
    assert (found.tail, found.values) == (1, 0)
    assert found.why(0) == []


def test_frames_and_words(gaussian):
    rows = gaussian.sample(5)
    found = gaussian.surprise(rows)
    assert found.to_frame().columns == ["row", "surprise", "tail", "stderr", "log_p", "n_draws"]
    assert repr(found).startswith("Surprise(5 rows; oddest is row ")
    assert "\n" not in repr(found)
    assert "tail probability" in found._repr_html_()
    assert gaussian.sampling_.is_exact  # of `sample` above, which surprise does not touch


def test_same_seed_same_bits_and_another_seed_others(gaussian):
    rows = gaussian.sample(50)
    first, again, other = (gaussian.surprise(rows, random_state=seed) for seed in (None, None, 5))
    np.testing.assert_array_equal(first.values, again.values)
    np.testing.assert_array_equal(first.values[:7], gaussian.surprise(rows[:7]).values)
    assert (first.values != other.values).any()


def test_an_estimated_evidence_widens_the_error():
    draws = np.linspace(-10, 0, 101)
    sure, unsure = tail_of(np.array([-5.0]), draws), tail_of(np.array([-5.0]), draws, np.array([1.0]))
    assert unsure.stderr[0] == pytest.approx(np.hypot(sure.stderr[0], 10 / 102))


def test_equally_likely_rows_tie_and_impossible_ones_are_infinitely_odd():
    draws = np.log(np.full(10, 0.5)) + 1e-8 * np.arange(10)
    found = tail_of(np.array([np.log(0.5), -np.inf]), draws)
    np.testing.assert_allclose(found.probability, [1, 1 / 11])
    np.testing.assert_allclose(found.surprise, [0, np.inf], atol=1e-6)  # float32


@pytest.mark.parametrize("n_draws", [1, 0, 2.5, True])
def test_a_wrong_number_of_draws_is_refused(gaussian, n_draws):
    with pytest.raises(ValueError, match="`n_draws` must be a whole number of at least 2"):
        gaussian.surprise(np.zeros((1, 3)), n_draws=n_draws)


def test_a_model_without_evidence_says_why():
    with pytest.raises(AttributeError, match=r"GAN has no surprise: .+ Models that have it: Independent, .*Mixture"):
        likely.GAN().surprise  # noqa: B018


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_reasons_and_notebooks_show_the_cells_of_their_own_columns(frame):
    # A column that never changes stands before the others, and one that names rows: neither is the model's.
    rng = np.random.default_rng(0)
    size = rng.normal(size=60).round(3)
    table = {"name": [f"n{i}" for i in range(60)], "same": ["x"] * 60, "size": size, "other": rng.integers(0, 3, 60)}
    model = likely.Independent(random_state=0).fit(frame(table))
    assert [column.name for column in model.schema_.left_out] == ["name", "same"]
    found = model.surprise(frame(table), n_draws=100, random_state=0).cells([7])
    assert {reason.column: reason.value for reason in found.reasons(0)} == {"size": size[7], "other": table["other"][7]}
    holes = frame(table | {"size": [None, *size[1:]]})
    shown = model.condition(holes)._repr_html_()
    assert "n0" not in shown
    assert f"{np.asarray(model.condition(holes).mean()['size'])[0]:.4g}" in shown
