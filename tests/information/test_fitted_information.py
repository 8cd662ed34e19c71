"""Information of fitted models: exact by enumeration, within its error by draws, a bound where the evidence is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import likely
from likely import information
from likely.information import Gaussian, fitted
from tests.information.information_checks import check_against

N = 3000


@pytest.fixture(scope="module")
def bits():
    """Two models of four binary columns, and all probabilities of each, by rows that are written out here."""
    rng = np.random.default_rng(0)
    x = (rng.random((300, 4)) < np.where(rng.random((300, 1)) < 0.4, 0.8, 0.3)).astype(float)
    models = likely.Mixture(2, random_state=0).fit(x), likely.Independent().fit(x)
    rows = np.array([[(i >> j) & 1 for j in range(4)] for i in range(16)], dtype=float)
    tables = []
    for model in models:
        p = np.zeros((2, 2, 2, 2))
        p[tuple(rows.astype(int).T)] = np.exp(model.evidence(rows).values)
        tables.append(p / p.sum())
    return models, tables


@pytest.fixture(scope="module")
def reals():
    """Two factor analyses, and the Gaussians that they are."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3))
    models = [likely.FactorAnalysis(1, random_state=0).fit(part) for part in (x[:100], x[100:] * 1.3)]
    truths = []
    for model in models:
        params, scale = model.params_, model.cells_.scaling.scale
        covariance = np.asarray(params.loadings @ params.loadings.T, float) + np.diag(np.asarray(params.noise, float))
        mean = np.asarray(params.offset, float) * scale + model.cells_.scaling.offset
        truths.append(Gaussian(mean, covariance * np.outer(scale, scale)))
    return models, truths


# What float32 leaves of a log-probability of size ten.
SINGLE = 1e-5


def test_few_discrete_rows_are_enumerated(bits):
    (p, q), (table, other) = bits
    found = information.kl(p, q)
    assert (found.kind, found.method) == ("exact", "sum over 16 rows")
    assert found.value == pytest.approx(information.kl(table, other).value, abs=SINGLE)
    assert information.entropy(p).value == pytest.approx(information.entropy(table).value, abs=SINGLE)
    crossed = information.cross_entropy(p, q)
    assert crossed.value == pytest.approx(information.cross_entropy(table, other).value, abs=SINGLE)
    assert information.jensen_shannon(p, q).kind == "exact"
    assert information.jensen_shannon(p, q).value == pytest.approx(
        information.jensen_shannon(table, other).value, abs=SINGLE
    )
    assert information.kl(p, p).value == pytest.approx(0, abs=SINGLE)


def test_parts_of_the_columns_are_marginals(bits):
    (p, _), (table, _) = bits
    for a, b in ((0, 1), ([0, 1], [2, 3])):
        shared = information.mutual_information(p, a, b)
        assert shared.kind == "exact"
        assert shared.value == pytest.approx(information.mutual_information(table, a, b).value, abs=SINGLE)
        rest = information.conditional_entropy(p, a, b)
        assert rest.value == pytest.approx(information.conditional_entropy(table, a, b).value, abs=SINGLE)


def test_pointwise_information_of_rows_is_that_of_the_table(bits):
    (p, _), (table, _) = bits
    rows = np.array([[0, 1, 1, 0], [1, 1, 0, 0]], dtype=float)
    found = information.pmi(p, rows, 0, 1)
    np.testing.assert_allclose(found, information.pmi(table.sum(axis=(2, 3)))[[0, 1], [1, 1]], atol=SINGLE)
    with pytest.raises(ValueError, match="give `rows`"):
        information.pmi(p)
    with pytest.raises(ValueError, match="needs an exact one"):
        information.pmi(Bounded(p, -0.25), rows)


def test_draws_are_within_their_error_of_enumeration(bits, monkeypatch):
    (p, q), (table, other) = bits
    monkeypatch.setattr(fitted, "MAX_ROWS", 8)
    found = information.kl(p, q, n_draws=N)
    assert (found.kind, found.method) == ("estimate", "3,000 draws")
    check_against(found, information.kl(table, other).value)
    check_against(information.jensen_shannon(p, q, n_draws=N), information.jensen_shannon(table, other).value)
    shared = information.mutual_information(p, [0, 1], [2, 3], n_draws=N)
    check_against(shared, information.mutual_information(table, [0, 1], [2, 3]).value)


def test_gaussian_models_agree_with_closed_forms(reals):
    (p, q), (one, other) = reals
    check_against(information.entropy(p, n_draws=N), one.entropy())
    check_against(information.kl(p, q, n_draws=N), one.kl(other))
    check_against(
        information.mutual_information(p, 0, [1, 2], n_draws=N), information.mutual_information(one, 0, (1, 2)).value
    )


class Bounded:
    """A model whose evidence is known only from one side."""

    def __init__(self, model, by):
        self.model, self.by, self.schema_, self.cells_ = model, by, model.schema_, model.cells_

    def evidence(self, rows):
        found = self.model.evidence(rows)
        bound = likely.Evidence.lower_bound if self.by < 0 else likely.Evidence.upper_bound
        return replace(
            bound(found.values + self.by, method="a bound"), measure=found.measure, fingerprint=found.fingerprint
        )

    def sample(self, n, random_state=0):
        return self.model.sample(n, random_state=random_state)

    @property
    def sampling_(self):
        return self.model.sampling_


def test_bounds_stay_bounds(bits):
    (p, q), (table, other) = bits
    truth = information.kl(table, other).value
    high = information.kl(p, Bounded(q, -0.25))
    assert high.kind == "upper"
    assert high.value == pytest.approx(truth + 0.25, abs=SINGLE)
    assert "a bound" in high.method
    low = information.kl(p, Bounded(q, 0.25))
    assert low.kind == "lower"
    assert low.value == pytest.approx(truth - 0.25, abs=SINGLE)
    drawn = information.entropy(Bounded(p, -0.25), n_draws=N)
    assert drawn.kind == "upper"
    check_against(drawn, information.entropy(table).value + 0.25)
    assert information.kl(Bounded(p, -0.25), Bounded(q, -0.25), n_draws=N).interval() == (-np.inf, np.inf)
    with pytest.raises(ValueError, match="Ask for `kl`"):
        information.jensen_shannon(p, Bounded(q, -0.25))


def test_unlike_measures_are_refused(bits, reals):
    (p, _), _ = bits
    x = np.random.default_rng(0).random((40, 4))
    with pytest.raises(likely.IncomparableError, match="lebesgue measure"):
        information.kl(p, likely.Independent(schema=likely.Schema.real(4)).fit(x))
    with pytest.raises(ValueError, match=r"3 (features|columns)"):
        information.kl(p, reals[0][0])
    with pytest.raises(ValueError, match="no column 'age'"):
        information.mutual_information(p, "age", 1)
    with pytest.raises(TypeError, match="cannot compare"):
        information.kl(p, [0.5, 0.5])


def test_words_that_were_never_seen_do_not_count():
    frame = pl.DataFrame({"a": list("xxyyz") * 20, "b": list("pqqqp") * 20})
    shuffled = pl.DataFrame({"a": list("zyxyx") * 20, "b": list("qpqqp") * 20})
    p, q = (likely.Independent().fit(rows) for rows in (frame, shuffled))
    found = information.entropy(p)
    assert found.kind == "exact"
    assert information.conditional_entropy(p, "a", "b").value < found.value
    assert information.kl(p, p).value == pytest.approx(0, abs=SINGLE)
    assert information.kl(p, q).value >= -SINGLE
    assert information.mutual_information(p, "a", "b").value == pytest.approx(0, abs=SINGLE)
