"""The imputer: scikit-learn's checks, and that it is the model's imputation in pipelines of arrays and frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import likely
from likely import Imputer


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([Imputer(likely.Independent(), random_state=0)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    size = rng.normal(size=80)
    out = pd.DataFrame({"id": [f"r{i}" for i in range(80)], "size": size, "colour": np.where(size > 0, "red", "blue")})
    out.loc[::5, "colour"] = None
    out.loc[1::7, "size"] = np.nan
    out.index = np.arange(80) + 1000
    return out


def test_it_is_the_imputation_of_the_model(frame):
    imputer = Imputer(likely.Independent(), random_state=3).fit(frame)
    filled = imputer.transform(frame)
    pd.testing.assert_frame_equal(filled, likely.Independent(random_state=3).fit(frame).impute(frame))
    assert not filled.isna().any(axis=None)
    assert list(imputer.get_feature_names_out()) == list(filled.columns) == ["id", "size", "colour"]
    assert filled.index.equals(frame.index)
    known = frame["size"].notna()
    assert filled.loc[known, "size"].equals(frame.loc[known, "size"])


def test_pipelines_column_transformers_and_outputs(frame):
    numbers = frame[["size"]].assign(twice=2 * frame["size"].fillna(0.5))
    rows = numbers.to_numpy()
    imputer = Imputer(likely.Independent(), random_state=0).set_output(transform="pandas")
    assert imputer.fit_transform(rows).columns.tolist() == ["x0", "x1"]
    assert imputer.fit_transform(numbers).columns.tolist() == ["size", "twice"]
    pipeline = make_pipeline(Imputer(likely.Independent(), random_state=0), Ridge()).fit(rows, rows[:, 1])
    assert pipeline.score(rows, rows[:, 1]) > 0.9
    both = make_column_transformer((imputer, ["size", "colour"]), remainder="passthrough").set_output(
        transform="pandas"
    )
    assert not both.fit_transform(frame).isna().any(axis=None)


def test_the_default_and_what_is_refused(frame):
    imputer = Imputer(random_state=0).fit(frame[["size"]])
    assert isinstance(imputer.model_, likely.Mixture)
    with pytest.raises(AttributeError, match="GAN has no impute"):
        Imputer(likely.GAN()).fit(frame)
    with pytest.raises(ValueError, match="model"):
        Imputer("mixture").fit(frame)


def test_multiple_imputation_by_rubin_s_rules_covers_as_often_as_it_should(global_random_seed):
    """The mean of a column half of which is unobserved, from a correlated one that is whole.

    Draws are made with the parameters as they were fitted, so that the variance by Rubin's rules is
    σ²/n (1 + (1 + 1/m) f (1 - ρ²)), where that of the estimate is σ²/n (1 + f / (1 - f) (1 - ρ²)), to first order.
    """
    n, m, rho, share, n_tables = 200, 10, 0.5, 0.5, 60
    rng = np.random.default_rng(global_random_seed)
    model = likely.Mixture(1, covariance="full", n_init=1, tol=1e-6, schema=likely.Schema.real(2), random_state=0)
    errors, variances = np.empty(n_tables), np.empty(n_tables)
    for table in range(n_tables):
        x = rng.normal(size=n)
        rows = np.column_stack([x, rho * x + np.sqrt(1 - rho**2) * rng.normal(size=n)])
        rows[::2, 1] = np.nan
        means, within = zip(*[(c[:, 1].mean(), c[:, 1].var(ddof=1) / n) for c in drawn(model, rows, m)], strict=True)
        errors[table] = np.mean(means)
        variances[table] = np.mean(within) + (1 + 1 / m) * np.var(means, ddof=1)
    rubin = (1 + (1 + 1 / m) * share * (1 - rho**2)) / n
    truth = (1 + share / (1 - share) * (1 - rho**2)) / n
    alarm = 4.5  # standard errors, beyond which there is a false alarm in 10^5
    assert abs(variances.mean() - rubin) < alarm * variances.std(ddof=1) / np.sqrt(n_tables) + 2 * rubin / n
    assert variances.mean() > (1 + 0.5 * share * (1 - rho**2)) / n  # What is within the copies alone is too little.
    covered = np.mean(np.abs(errors) < 1.96 * np.sqrt(variances))
    expected = 2 * ndtr(1.96 * np.sqrt(rubin / truth)) - 1
    assert abs(covered - expected) < alarm * np.sqrt(expected * (1 - expected) / n_tables)


def drawn(model, rows, m):
    """Completed copies of the rows."""
    return model.fit(rows).condition(rows).sample(m, random_state=1)
