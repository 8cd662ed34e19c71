"""What every registered model keeps, whatever it is: one table, one set of promises."""

import inspect

import jax
import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import likely
from likely.contract.evidence import KINDS
from likely.contract.settings import settings_of
from likely.storage import entries, registry
from tests.contracts.table import (
    NAMES,
    binary_frame,
    is_binary_only,
    is_real_only,
    labels_for,
    mixed_frame,
    rows_for,
    small,
    with_hook,
)

SCORED, SAMPLED, CONDITIONED = with_hook("_evidence"), with_hook("_sample"), with_hook("_condition")
DISCRETE = [name for name in SCORED if not is_real_only(name)]
BINARY = [name for name in NAMES if is_binary_only(name)]
NOT_BINARY = [name for name in NAMES if not is_binary_only(name)]
VERBS = tuple(verb for verbs in entries.HOOKS.values() for verb in verbs)


def same_where_offered(one, other, X):
    """Two models give the same bits in whatever they offer."""
    offers = registry.find(type(one).__name__).offers
    for verb, argument in {"score_samples": X, "sample": 5, "impute": X, "denoise": X, "transform": X}.items():
        if verb in offers:
            np.testing.assert_array_equal(getattr(one, verb)(argument), getattr(other, verb)(argument))


class Fitted(dict):
    """Fitted models by name, each fitted when it is first asked for."""

    def __init__(self, holes: float):
        super().__init__()
        self.holes = holes

    def __missing__(self, name):
        X = rows_for(name)(0, holes=self.holes)
        self[name] = small(name).fit(X, labels_for(name, X))
        return self[name]


@pytest.fixture(scope="module")
def fitted():
    return Fitted(0.0)


@pytest.fixture(scope="module")
def fitted_on_holes():
    return Fitted(0.3)


@pytest.mark.parametrize("name", NAMES)
def test_the_registry_says_what_the_class_is(name):
    entry, cls = registry.find(name), registry.model_class(name)
    assert cls.__name__ == name == entry.class_name
    assert {hook for hook in entries.HOOKS if hasattr(cls, hook)} == set(entry.hooks)
    assert bool(cls._no_evidence) != entry.has_evidence
    assert getattr(likely, name) is cls


@pytest.mark.parametrize("name", NAMES)
def test_public_methods_are_the_bases(name):
    """Models write hooks; no model overrides a public method of the contract."""
    cls = registry.model_class(name)
    ours = [base for base in likely.Model.__mro__ if base.__module__.startswith("likely.")]
    # `set_fit_request` is scikit-learn's, and a model may declare a setting of the base with another default.
    names = {name for base in ours for name in vars(base) if not name.startswith(("_", "set_"))}
    contract = names - set(settings_of(likely.Model))
    assert {"fit", "evidence", "sample", "condition", "save"} <= contract
    assert not contract & set(vars(cls))
    parameters = inspect.signature(cls.__init__).parameters
    assert {"schema", "random_state"} <= set(parameters)


@pytest.mark.parametrize("name", SCORED)
def test_evidence_is_typed_and_one_with_the_scores(name, fitted):
    model, X = fitted[name], rows_for(name)(1, n=30)
    evidence = model.evidence(X)
    assert evidence.kind in KINDS
    assert evidence.measure == ("lebesgue" if is_real_only(name) else "counting")
    assert (evidence.lower <= evidence.values + 1e-9).all()
    assert (evidence.values <= evidence.upper + 1e-9).all()
    np.testing.assert_array_equal(model.score_samples(X), evidence.values)
    assert model.score(X) == evidence.mean


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_of_all_rows_sum_to_one(name, fitted):
    """Exactly for exact evidence; at most one for a lower bound, up to its Monte Carlo error."""
    states = np.array(np.meshgrid(*[[0.0, 1.0]] * 6)).reshape(6, -1).T
    evidence = fitted[name].evidence(states)
    probabilities = np.exp(evidence.values)
    total, error = probabilities.sum(), float(probabilities @ evidence.stderr)
    if evidence.kind == "exact":
        np.testing.assert_allclose(total, 1, rtol=1e-4)
    else:
        assert total < 1 + 5 * error
        assert total > 0.95  # a bound this loose on a model this small would be a fault


@pytest.mark.parametrize("name", DISCRETE)
def test_evidence_of_holes_is_the_marginal(name, fitted):
    """Erasing a binary cell must give the sum over its two values."""
    model, X = fitted[name], rows_for(name)(2, n=20)
    holes, zero, one = X.copy(), X.copy(), X.copy()
    holes[:, 2], zero[:, 2], one[:, 2] = np.nan, 0, 1
    evidence, of_zero, of_one = (model.evidence(rows) for rows in (holes, zero, one))
    error = 5 * (evidence.stderr + of_zero.stderr + of_one.stderr)  # 0 for exact evidence
    difference = np.abs(evidence.values - np.logaddexp(of_zero.values, of_one.values))
    assert (difference < 1e-4 + error).all()


@pytest.mark.parametrize("name", SCORED)
def test_a_row_without_an_observed_cell_has_probability_one(name, fitted):
    evidence = fitted[name].evidence(np.full((1, 6), np.nan))
    np.testing.assert_allclose(evidence.values, 0, atol=max(1e-4, 5 * float(evidence.stderr[0])))


@pytest.mark.parametrize("name", SCORED)
def test_evidence_is_a_function_of_the_row_alone(name, fitted):
    """Neither the other rows, nor their order or number, change a row's evidence."""
    model, X = fitted[name], rows_for(name)(3, n=300, holes=0.2)
    whole = model.evidence(X)
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(model.evidence(X[order]).values, whole.values[order])
    assert model.evidence(X[order]).fingerprint == whole[order].fingerprint != whole.fingerprint
    np.testing.assert_array_equal(model.evidence(X[:7]).values, whole.values[:7])


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits(name, fitted):
    rows, X = rows_for(name)(0), rows_for(name)(1, n=20)
    again = small(name).fit(rows, labels_for(name, rows))
    jax.tree.map(np.testing.assert_array_equal, again.params_, fitted[name].params_)
    same_where_offered(again, fitted[name], X)
    if name in SAMPLED:
        assert not np.array_equal(again.sample(5, random_state=1), again.sample(5, random_state=2))


@pytest.mark.parametrize("name", [name for name in SCORED if name in SAMPLED])
def test_asking_for_samples_does_not_change_the_evidence(name, fitted):
    model, X = fitted[name], rows_for(name)(1, n=10)
    before = model.score_samples(X)
    model.sample(3)
    np.testing.assert_array_equal(model.score_samples(X), before)


@pytest.mark.parametrize("name", NAMES)
def test_rows_with_holes_work_in_every_method(name, fitted_on_holes):
    model, X = fitted_on_holes[name], rows_for(name)(4, n=25, holes=0.4)
    offers = registry.find(name).offers
    if "score" in offers:
        assert np.isfinite(model.score_samples(X)).all()
    if "sample" in offers:
        assert model.sample(4).shape == (4, 6)
    if "impute" in offers:
        filled = model.impute(X)
        assert np.isfinite(filled).all()
        np.testing.assert_allclose(filled[~np.isnan(X)], X[~np.isnan(X)])
    if "denoise" in offers:
        assert np.isfinite(model.denoise(X)).all()
    if "transform" in offers:
        codes = model.transform(X)
        assert codes.shape == (25, model.n_components)
        assert np.isfinite(codes).all()
    if "inverse_transform" in offers:
        assert model.inverse_transform(model.transform(X)).shape == X.shape


@pytest.mark.parametrize("name", CONDITIONED)
def test_conditional_completes_what_is_missing_and_nothing_else(name, fitted):
    model, X = fitted[name], rows_for(name)(5, n=10, holes=0.5)
    conditional = model.condition(X)
    seen = ~np.isnan(X)
    assert conditional.method
    assert (conditional.std()[seen] == 0).all()
    for rows in (conditional.mean(), *conditional.sample(2, random_state=0)):
        assert np.isfinite(rows).all()
        np.testing.assert_allclose(rows[seen], X[seen])
    if not is_real_only(name):
        table = conditional.probabilities(0)
        np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_allclose(table[:, 1], conditional.mean()[:, 0], rtol=1e-5)
        assert set(np.unique(model.impute(X))) <= {0.0, 1.0}


@pytest.mark.parametrize("name", NOT_BINARY)
@pytest.mark.filterwarnings("ignore::likely.EvidenceWarning")  # Chains as short as these tests', which say so.
def test_mixed_data_frames_with_holes_come_back_as_data_frames(name):
    frame, model = mixed_frame(0), small(name)
    if is_real_only(name):
        with pytest.raises(likely.SchemaError, match="'city' is categorical"):
            model.fit(frame, labels_for(name, frame))
        frame = frame.drop("city")
    model.fit(frame, labels_for(name, frame))
    assert model.evidence(frame).measure == "mixed"
    offers = registry.find(name).offers
    rows = model.sample(7) if "sample" in offers else model.denoise(frame)
    assert isinstance(rows, pl.DataFrame)
    assert rows.columns == frame.columns
    if "impute" not in offers:
        return
    filled = model.impute(frame)
    assert filled.null_count().sum_horizontal().item() == 0
    known = frame["height"].is_not_null()
    np.testing.assert_allclose(filled["height"].filter(known), frame["height"].filter(known))
    if not is_real_only(name):
        assert set(filled["city"]) <= {"Ulm", "Rome", "Oslo"}


@pytest.mark.parametrize("name", BINARY)
def test_models_of_binary_columns_refuse_others_and_give_back_frames(name):
    with pytest.raises(likely.SchemaError, match=r"column 'height' is real, and .+ takes binary columns only"):
        small(name).fit(mixed_frame(0))
    frame = binary_frame(0)
    model = small(name).fit(frame)
    assert model.evidence(frame).measure == "counting"
    assert model.sample(7).columns == frame.columns
    filled = model.impute(frame)
    assert filled.null_count().sum_horizontal().item() == 0
    assert filled["sleeps"].to_list() == [
        new if cell is None else cell for cell, new in zip(frame["sleeps"], filled["sleeps"], strict=True)
    ]


@pytest.mark.parametrize("name", [name for name in NOT_BINARY if name in SCORED])
@pytest.mark.filterwarnings("ignore::likely.EvidenceWarning")  # Chains as short as these tests', which say so.
def test_units_of_real_columns_only_shift_the_evidence(name):
    """Metres or millimetres: log p changes by log 1000 a cell, and nothing else does."""
    rng = np.random.default_rng(0)
    metres = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3)) + 2
    y = labels_for(name, metres)
    first, second = small(name).fit(metres, y), small(name).fit(1000 * metres, y)
    shift = 3 * np.log(1000)
    np.testing.assert_allclose(
        first.score_samples(metres), second.score_samples(1000 * metres) + shift, rtol=2e-3, atol=2e-3
    )
    np.testing.assert_allclose(1000 * first.sample(5), second.sample(5), rtol=1e-2, atol=1e-2 * 1000)


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded_is_the_same_model(name, fitted, tmp_path):
    model, X = fitted[name], rows_for(name)(1, n=20, holes=0.2)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert loaded.schema_ == model.schema_
    assert loaded.history_ == model.history_
    same_where_offered(loaded, model, X)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_model_cannot_do_says_why_and_who_can(name, fitted):
    for verb in set(VERBS) - set(registry.find(name).offers):
        assert not hasattr(fitted[name], verb)
        with pytest.raises(AttributeError, match=rf"{name} has no {verb}: .+\. Models that have it: \w+"):
            getattr(fitted[name], verb)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SCORED])
def test_a_model_without_a_likelihood_says_so(name, fitted):
    evidence = fitted[name].evidence(rows_for(name)(1, n=5))
    assert evidence.kind == "unavailable"
    assert evidence.reason
    assert len(evidence) == 5


@pytest.mark.parametrize("name", NAMES)
def test_unfitted_models_say_so(name):
    with pytest.raises(NotFittedError):
        small(name).evidence(rows_for(name)(0))
    if name in SAMPLED:
        with pytest.raises(NotFittedError):
            small(name).sample(1)


@pytest.mark.parametrize("name", DISCRETE)
def test_contradictions_name_column_and_value(name, fitted):
    bad = rows_for(name)(1, n=5)
    bad[3, 2] = 0.5
    with pytest.raises(likely.SchemaError, match=r"'x2' is binary and needs 0 or 1, but row 3 holds 0.5"):
        fitted[name].evidence(bad)


@pytest.mark.parametrize("name", NAMES)
def test_a_column_without_observations_is_refused(name):
    X = rows_for(name)(0)
    X[:, 4] = np.nan
    with pytest.raises(likely.SchemaError, match="'x4' has no observed cell"):
        small(name).fit(X, labels_for(name, X))


@pytest.mark.parametrize("name", NAMES)
def test_clone_grid_search_and_pipeline(name):
    X = rows_for(name)(0)
    model, y = small(name), labels_for(name, X)
    assert clone(model).get_params() == model.get_params()
    pipeline = make_pipeline(FunctionTransformer(), small(name)).fit(X, y)
    if name in SCORED:
        every = np.arange(len(X))  # one fold of all rows: fits of one shape compile once
        search = GridSearchCV(model, {"random_state": [0, 1]}, cv=[(every, every)]).fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert np.isfinite(pipeline.score(X))
    if "transform" in registry.find(name).offers:
        assert pipeline.transform(X).shape == (len(X), model.n_components)


@pytest.mark.parametrize("name", NAMES)
def test_a_random_state_of_none_is_remembered(name):
    X = rows_for(name)(0)
    model = small(name, random_state=None).fit(X, labels_for(name, X))
    same_where_offered(model, model, X[:5])


@pytest.mark.parametrize("name", SAMPLED)
def test_bad_numbers_of_rows_are_refused(name, fitted):
    for n in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="must be a positive integer"):
            fitted[name].sample(n)
