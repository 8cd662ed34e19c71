"""Independent work gives the same bits wherever joblib sends it: to processes, threads, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import likely

MODELS = {
    "mixture": likely.Mixture(2, random_state=0),
    "factors": likely.FactorAnalysis(1, random_state=0),
    "alone": likely.Independent(),
}


@contextmanager
def dask_cluster() -> Iterator[None]:
    """A cluster of one process with two threads: two models are measured at a time, in another process."""
    distributed = pytest.importorskip("distributed", reason="Dask is an extra: pip install likely[dask]")
    options = {"processes": True, "n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster), joblib.parallel_config("dask"):
        yield


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(120, 1)) + 0.5 * rng.normal(size=(120, 4))).astype(np.float32)


def compared(rows: np.ndarray, **options: Any) -> dict[str, np.ndarray]:
    """The evidence of each model's rows."""
    board = likely.compare(MODELS, rows, random_state=0, progress=False, report=None, **options)
    return {entry.name: np.asarray(entry.evidence.values) for entry in board.ranked}


@pytest.fixture(scope="module")
def one_by_one(rows: np.ndarray) -> dict[str, np.ndarray]:
    return compared(rows)


def check_equal(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_compare_by_processes_is_compare_here(rows, one_by_one):
    check_equal(compared(rows, n_jobs=2), one_by_one)


def test_compare_on_a_cluster_is_compare_here(rows, one_by_one):
    with dask_cluster():
        check_equal(compared(rows), one_by_one)


def test_compare_in_threads_is_compare_here(rows, one_by_one):
    with joblib.parallel_config("threading", n_jobs=2):
        check_equal(compared(rows), one_by_one)


def test_resampled_graphs_are_the_same_in_threads(rows):
    model = likely.BayesianNetwork(structure="tree", random_state=0).fit((rows > 0).astype(float))
    here = model.edge_confidence((rows > 0).astype(float), n_resamples=4, random_state=1)
    with joblib.parallel_config("threading", n_jobs=2):
        there = model.edge_confidence((rows > 0).astype(float), n_resamples=4, random_state=1)
    assert here.directed == there.directed


def test_bagging_is_the_same_in_threads(rows):
    def probabilities() -> np.ndarray:
        member = likely.JointPredictor(likely.Mixture(2))
        bagged = likely.Bagged(member, n_members=3, random_state=0).fit(rows[:, :3], rows[:, 3] > 0)
        return np.asarray(bagged.predict_proba(rows[:20, :3]))

    here = probabilities()
    with joblib.parallel_config("threading", n_jobs=2):
        np.testing.assert_array_equal(probabilities(), here)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_ngrams_are_counted_alike_by_any_workers(backend):
    rng = np.random.default_rng(0)
    sentences = [[f"w{number}" for number in rng.zipf(1.5, 9) % 40] for _ in range(200)]

    def counted() -> list[np.ndarray]:
        model = likely.NGram(3, random_state=0).fit(sentences)
        return [np.asarray(array) for array in model._arrays().values()]

    here = counted()
    for n_jobs in (2, 3) if backend == "threading" else (2,):
        with joblib.parallel_config(backend, n_jobs=n_jobs):
            for found, expected in zip(counted(), here, strict=True):
                np.testing.assert_array_equal(found, expected)


def test_grid_search_is_the_same_in_threads(rows):
    def scores(n_jobs: int | None) -> np.ndarray:
        search = GridSearchCV(likely.Mixture(random_state=0), {"n_components": [1, 2]}, cv=2, n_jobs=n_jobs)
        with joblib.parallel_config("threading"):
            return search.fit(rows).cv_results_["mean_test_score"]

    np.testing.assert_array_equal(scores(2), scores(1))


def test_what_is_no_number_of_processes_is_refused(rows):
    for wrong in (0, True, 1.5):
        with pytest.raises(ValueError, match="n_jobs must be a whole number other than 0"):
            likely.compare(MODELS, rows, n_jobs=wrong)
