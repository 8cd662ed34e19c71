"""FactorAnalysis as users meet it: against scikit-learn, in their units, with holes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.decomposition import FactorAnalysis as PeerFactorAnalysis

import likely
from likely import FactorAnalysis, SchemaError
from tests.models.latent.linear.linear_precision_checks import check_rounding, nearly_dependent


def table(seed: int, n: int = 400, holes: float = 0.0) -> np.ndarray:
    """Two causes behind seven columns of very different scales and offsets."""
    rng = np.random.default_rng(seed)
    loadings = np.array([[1.0, 0.8, 0.6, 0.4, 1.0, 0.1, 0.5], [0.1, 0.5, -0.7, 0.9, -0.3, 1.0, 0.6]])
    scale, offset = np.array([1, 10, 0.1, 100, 1, 3, 0.01]), np.array([0, 2000, 3, -50, 1e4, 0, 1])
    rows = rng.normal(size=(n, 2)) @ loadings + rng.normal(size=(n, 7)) * rng.uniform(0.5, 1.0, 7)
    rows = rows * scale + offset
    rows[rng.random(rows.shape) < holes] = np.nan
    return rows


@pytest.mark.usefixtures("x64")
def test_reaches_scikit_learn_s_maximum(global_random_seed):
    rows = table(global_random_seed)
    standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    peer = PeerFactorAnalysis(2, svd_method="lapack", tol=1e-9, max_iter=20_000).fit(standard)
    model = FactorAnalysis(2, tol=1e-13, max_iter=20_000, random_state=0).fit(rows)
    expected = peer.score(standard) - np.log(rows.std(axis=0)).sum()
    np.testing.assert_allclose(model.score(rows), expected, rtol=1e-8)
    np.testing.assert_allclose(model.noise_variance_, peer.noise_variance_ * rows.var(axis=0), rtol=2e-3)


@pytest.mark.usefixtures("x64")
def test_evidence_in_the_user_s_units(global_random_seed):
    rows = table(global_random_seed, holes=0.2)
    model = FactorAnalysis(2, random_state=0).fit(rows)
    cov = model.components_.T @ model.components_ + np.diag(model.noise_variance_)
    for row, value in zip(rows[:20], model.score_samples(rows[:20]), strict=True):
        seen = ~np.isnan(row)
        marginal = stats.multivariate_normal(model.mean_[seen], cov[np.ix_(seen, seen)]).logpdf(row[seen])
        np.testing.assert_allclose(value, marginal, rtol=1e-8)
    assert model.evidence(rows).kind == "exact"
    assert model.evidence(rows).measure == "lebesgue"


def test_history_is_the_score_of_the_training_rows_and_never_falls(global_random_seed):
    for holes in (0.0, 0.2):
        rows = table(global_random_seed, holes=holes)
        model = FactorAnalysis(2, tol=1e-7, random_state=0).fit(rows)
        curve = model.history_["objective"]
        assert model.converged_
        assert len(curve) == model.n_iter_
        assert (np.diff(curve) >= -1e-9 * np.abs(curve[:-1])).all()
        np.testing.assert_allclose(curve[-1], model.score(rows), rtol=1e-5)


def test_holes_cost_little_when_there_are_few(global_random_seed):
    """With 5% of the cells gone the covariance that is learned stays within sampling error of the complete rows'."""
    rows = table(global_random_seed, n=4000)
    holed = rows.copy()
    holed[np.random.default_rng(global_random_seed).random(rows.shape) < 0.05] = np.nan
    one, other = (FactorAnalysis(2, tol=1e-6, random_state=0).fit(X) for X in (rows, holed))
    scale = rows.std(axis=0)
    correlation = [(m.components_ / scale).T @ (m.components_ / scale) for m in (one, other)]
    np.testing.assert_allclose(correlation[0], correlation[1], atol=6 / np.sqrt(4000))
    np.testing.assert_allclose(one.mean_, other.mean_, atol=(6 / np.sqrt(4000) * scale).max())


def test_imputes_better_than_the_mean(global_random_seed):
    rows = table(global_random_seed, n=1000)
    model = FactorAnalysis(2, random_state=0).fit(rows)
    holed, hidden = rows.copy(), np.random.default_rng(global_random_seed).random(rows.shape) < 0.2
    holed[hidden] = np.nan
    conditional = model.condition(holed)
    error = (conditional.mean() - rows)[hidden]
    calibration = np.square(error / conditional.std()[hidden]).mean()
    # A squared normal variate has variance 2. The fit's 20 free parameters, from 1000 rows, are off by a fiftieth.
    assert calibration == pytest.approx(1, abs=6 * np.sqrt(2 / hidden.sum()) + 0.02)
    scale = np.broadcast_to(rows.std(axis=0), rows.shape)[hidden]
    assert np.square(error / scale).mean() < 0.9
    np.testing.assert_array_equal(conditional.mean()[~hidden], rows[~hidden])


def test_codes_decode_and_denoise(global_random_seed):
    rows = table(global_random_seed)
    model = FactorAnalysis(2, random_state=0).fit(rows)
    codes = model.transform(rows)
    assert codes.shape == (len(rows), 2)
    expected = codes @ model.components_ + model.mean_
    np.testing.assert_allclose((model.inverse_transform(codes) - expected) / rows.std(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose((model.denoise(rows) - expected) / rows.std(axis=0), 0, atol=1e-5)


def test_constant_and_repeated_columns_meet_the_floor():
    """Without a floor the likelihood is unbounded: scikit-learn's is 1e-12 in the user's units, ours is relative."""
    rows = table(0)[:, [0, 1, 1, 2]]
    rows = np.column_stack([rows, np.full(len(rows), 7.0)])
    model = FactorAnalysis(2, min_noise=1e-4, tol=1e-8, random_state=0).fit(rows)
    relative = model.noise_variance_[:4] / rows[:, :4].var(axis=0)
    np.testing.assert_allclose(relative[1:3], 1e-4, rtol=1e-3)
    np.testing.assert_allclose(model.noise_variance_[4], 1e-4, rtol=1e-6)
    assert np.isfinite(model.score_samples(rows)).all()


def test_evidence_is_right_where_columns_nearly_determine_each_other(global_random_seed):
    """float32 parameters and rows, noise a millionth of the variance, many holes: still exact to what they can say."""
    rng = np.random.default_rng(global_random_seed)
    rows = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 12)) + rng.normal(size=(500, 12)) * np.repeat([1e-3, 0.7], 6)
    model = FactorAnalysis(3, tol=1e-6, random_state=0).fit(rows)
    rows[:, 1:][rng.random((500, 11)) < 0.4] = np.nan
    cov = model.components_.T @ model.components_ + np.diag(model.noise_variance_)
    for row, value in zip(rows, model.score_samples(rows), strict=True):
        seen = ~np.isnan(row)
        marginal = stats.multivariate_normal(model.mean_[seen], cov[np.ix_(seen, seen)]).logpdf(row[seen])
        np.testing.assert_allclose(value, marginal, rtol=1e-3, atol=5e-3)


def test_repeated_fits_and_files_give_the_same_bits(tmp_path):
    rows = table(3, holes=0.1)
    one, other = (FactorAnalysis(2, random_state=5).fit(rows) for _ in range(2))
    one.save(tmp_path / "m.likely")
    loaded = likely.load(tmp_path / "m.likely")
    for model in (other, loaded):
        np.testing.assert_array_equal(one.score_samples(rows), model.score_samples(rows))
        np.testing.assert_array_equal(one.sample(3, random_state=1), model.sample(3, random_state=1))
    np.testing.assert_array_equal(loaded.noise_variance_, one.noise_variance_)


def test_reads_binary_and_count_columns_as_numbers_and_refuses_categories():
    frame = pd.DataFrame({"a": [0, 1, 1, 0, 1], "b": [3, 4, 5, 9, 1], "c": [0.5, 0.1, -2.0, 1.0, 0.3]})
    model = FactorAnalysis(1, random_state=0).fit(frame)
    assert model.schema_.kinds == ("real", "grid", "real")
    assert isinstance(model.sample(2), pd.DataFrame)
    with pytest.raises(SchemaError, match="'d' is categorical"):
        FactorAnalysis(1).fit(frame.assign(d=list("xyxyx")))


def test_more_components_than_columns_is_refused_before_any_work():
    with pytest.raises(ValueError, match=r"`n_components` must be at most n_columns \(7\), got 8: lower it."):
        FactorAnalysis(8).fit(table(0))


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9])
def test_evidence_of_nearly_dependent_columns_is_off_by_no_more_than_it_says(noise, global_random_seed):
    rows = nearly_dependent(global_random_seed, noise)
    for kind, more in ((FactorAnalysis, {"tol": 1e-6, "max_iter": 2000}), (likely.ProbabilisticPCA, {})):
        check_rounding(kind(1, min_noise=noise / 10, random_state=0, **more).fit(rows), rows)
