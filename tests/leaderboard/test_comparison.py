"""`likely.compare` end to end on small data."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likely
from likely.leaderboard.comparison import as_dataset
from likely.leaderboard.lineup import line_up
from likely.leaderboard.live_table import LiveTable
from likely.leaderboard.measuring import one_line
from tests.contracts.table import binary_rows


@pytest.fixture(scope="module")
def pairs():
    """Binary rows of four columns, the last two copies of the first two but for a tenth."""
    rng = np.random.RandomState(0)
    first = (rng.random_sample((300, 2)) < 0.5).astype(float)
    return np.hstack([first, np.where(rng.random_sample(first.shape) < 0.1, 1 - first, first)])


def small_mixture(n_components=4, **options):
    return likely.Mixture(n_components, n_init=1, max_iter=20, **options)


def test_a_model_that_sees_dependence_beats_the_base_line(pairs):
    board = likely.compare([likely.Independent(), small_mixture()], pairs)
    assert [e.name for e in board.ranked] == ["Mixture", "Independent"]
    best, last = board
    assert last.standing == "behind"
    assert best.kind == "exact"
    assert best.fit_seconds > 0
    assert best.score_seconds > 0
    assert best.n_parameters == best.model.n_parameters_
    assert best.mean == pytest.approx(best.model.score(board.dataset.test))


def test_bare_rows_are_split_with_the_seed(pairs):
    data = as_dataset(pairs, seed=3)
    assert [len(part) for part in (data.train, data.valid, data.test)] == [240, 30, 30]
    assert np.array_equal(as_dataset(pairs, seed=3).test, data.test)
    assert not np.array_equal(as_dataset(pairs, seed=4).test, data.test)
    assert sorted(map(tuple, np.vstack([data.train, data.valid, data.test]))) == sorted(map(tuple, pairs))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_any_library(kind):
    table = {"colour": ["red", "blue", None] * 20, "size": [1.5, 2.5, 3.5] * 20}
    board = likely.compare([likely.Independent()], kind(table))
    assert board.measure == "counting"
    assert board.n_rows == 6


def test_models_are_cloned_and_get_schema_and_seed(pairs):
    given = small_mixture()
    board = likely.compare([given], pairs, random_state=5)
    assert given.schema is None
    assert not hasattr(given, "params_")
    assert board[0].model.schema == board.dataset.schema
    assert board[0].model.seed_ == 5
    own = small_mixture(random_state=9)
    assert likely.compare([own], pairs)[0].model.seed_ == 9


def test_names(pairs):
    models = [small_mixture(2), small_mixture(3), small_mixture(3), likely.Independent()]
    names = sorted(likely.compare(models, pairs).names)
    shared = "max_iter=20, n_components={}, n_init=1"
    assert names[0] == "Independent"
    assert all(name.startswith("Mixture(") for name in names[1:])
    assert len(set(names)) == 4
    assert any("n_components=2" in name for name in names), shared
    assert likely.compare({"mine": likely.Independent()}, pairs).names == ["mine"]
    assert likely.compare("independent", pairs).names == ["Independent"]
    assert likely.compare(likely.Independent(), pairs).names == ["Independent"]


def test_unlike_evidence_and_failures_stand_apart():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"a": rng.choice(["x", "y", "z"], 60), "b": rng.standard_normal(60)})
    board = likely.compare([likely.Independent(), likely.FactorAnalysis(1)], frame)
    assert [e.name for e in board.ranked] == ["Independent"]
    (apart,) = board.apart
    assert "column 'a' is categorical" in apart.apart
    assert apart.model is None

    binary = (rng.random_sample((60, 3)) < 0.5).astype(float)
    board = likely.compare([likely.Independent(), likely.FactorAnalysis(1)], binary)
    assert "Lebesgue" in board["FactorAnalysis"].apart
    assert board["FactorAnalysis"].model is not None


def test_one_failure_does_not_stop_the_others(pairs):
    class Broken(likely.Independent):
        def _fit(self, rows, key, run):
            raise RuntimeError("it\nbroke")

    class Mute(likely.Independent):
        def _evidence(self, rows, key):
            raise RuntimeError("no score")

    board = likely.compare([Broken(), Mute(), likely.Independent()], pairs)
    assert [e.name for e in board.ranked] == ["Independent"]
    assert board["Broken"].apart == "it could not be fitted: RuntimeError: it broke"
    assert board["Mute"].apart == "it could not be scored: RuntimeError: no score"


def test_some_test_rows_only(pairs):
    board = likely.compare([likely.Independent()], pairs, n_score_rows=7)
    assert board.n_rows == 7
    assert likely.compare([likely.Independent()], pairs, n_score_rows=1000).n_rows == 30


def test_progress_changes_nothing(pairs, monkeypatch):
    silent = likely.compare([small_mixture()], pairs, progress=False)
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    shown = likely.compare([small_mixture()], pairs, progress=True)
    assert np.array_equal(silent[0].evidence.values, shown[0].evidence.values)


def test_live_table_shows_what_is_done_and_what_goes_on():
    from rich.console import Console

    table = LiveTable("title", ["a", "b", "c"])
    table.done(likely.leaderboard.Entry("a", failure="it could not be fitted: [odd] reason"))
    table.stage("b", "fit")
    table.start(10, "training")
    table.update(5, {"loss": 1.25})
    console = Console(file=io.StringIO(), width=100)
    console.print(table)
    text = console.file.getvalue()
    for part in ("title", "[odd] reason", " 50%", "loss 1.25", "c"):
        assert part in text
    table.finish()
    table.stage("report")
    console.print(table)
    assert "drawing the report" in console.file.getvalue()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"models": []}, ValueError, "no model to compare"),
        ({"models": ["mixtur"]}, ValueError, "Did you mean 'mixture'"),
        ({"models": [object()]}, TypeError, "likely.Model"),
        ({"models": [likely.Independent]}, TypeError, r"Independent\(\)"),
        ({"models": 3}, TypeError, "list, a dictionary or None"),
        ({"models": [likely.Mixture(0)]}, ValueError, "n_components"),
        ({"dataset": "digit"}, ValueError, "digits"),
        ({"dataset": np.zeros(3)}, ValueError, "2D"),
        ({"dataset": np.zeros((2, 2))}, ValueError, "at least 3"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"random_state": True}, ValueError, "random_state"),
        ({"n_score_rows": 0}, ValueError, "n_score_rows"),
        ({"report": "nowhere/at/all.html"}, ValueError, "does not exist"),
        ({"report": "."}, ValueError, "is a folder"),
    ],
)
def test_bad_input_is_found_before_any_work(pairs, arguments, error, words, monkeypatch):
    def never(*a, **k):
        raise AssertionError("work began")

    monkeypatch.setattr(likely.Independent, "fit", never)
    call = {"models": [likely.Independent()], "dataset": pairs} | arguments
    with pytest.raises(error, match=words):
        likely.compare(call.pop("models"), call.pop("dataset"), **call)


@pytest.mark.parametrize("n_rows", [5, 1000, 50_000])
@pytest.mark.parametrize("schema", [likely.Schema.binary(64, (8, 8)), likely.Schema.real(2), likely.Schema.real(1)])
def test_line_up_suits_any_size(n_rows, schema):
    rows = np.zeros((n_rows, schema.n_columns), np.float32)
    models = line_up(likely.datasets.Dataset(rows, rows, rows, schema, "zeros"))
    assert next(iter(models)) == "Independent"
    binary = set(schema.kinds) == {"binary"}
    scored = [e.class_name for e in likely.storage.registry.learning_from("rows") if e.has_evidence]
    takes = [name for name in scored if binary or not getattr(likely, name)._binary_only]
    takes.remove("Stack")  # It is made of the others.
    assert list(models) == takes
    for model in models.values():
        model._validate_params()
    assert models["Mixture"].n_components <= n_rows
    assert models["FactorAnalysis"].n_components <= schema.n_columns


def test_one_line():
    assert one_line(ValueError("a\n  b")) == "a b"
    assert one_line(RuntimeError("a")) == "RuntimeError: a"
    assert one_line(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_a_stack_is_the_last_line():
    """A mixture of those that can be mixed: exact, as they are; no worse than the best by more than its rows' noise."""
    rows = binary_rows(0, 200)
    board = likely.compare(["independent", likely.Mixture(2, n_init=1, max_iter=20)], rows, stack=True)
    assert board.names == ["Independent", "Mixture", "Stack"]
    mixed = board["Stack"]
    assert mixed.kind == "exact"
    assert mixed.evidence - board["Independent"].evidence is not None
    np.testing.assert_allclose(mixed.model.evidence(board.dataset.test).values, mixed.evidence.values, rtol=1e-9)
    with pytest.raises(ValueError, match="mixes models of the rows of a table"):
        likely.compare(["mixture"], "digits", target="label", stack=True)
    assert "takes two" in likely.compare(["independent"], rows, stack=True)["Stack"].failure
