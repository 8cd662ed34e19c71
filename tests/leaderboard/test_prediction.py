"""Comparisons by target: who is ranked, by what, and what is refused."""

import json

import numpy as np
import polars as pl
import pytest

import likely
from likely.leaderboard.prediction import prediction_calibration, predictors
from tests.cli.test_commands import refused, succeed


def table(n=300, seed=0):
    """A tree's kind and height from two measurements, some of them missing."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    girth = rng.normal(10 + 4 * kind)
    frame = pl.DataFrame(
        {
            "girth": np.where(rng.random(n) < 0.1, np.nan, girth),
            "age": rng.normal(60 - 10 * kind, 4),
            "height": girth * 2 + rng.normal(size=n),
            "kind": [["ash", "oak"][k] if rng.random() < 0.95 else None for k in kind],
        }
    )
    return frame.with_columns(pl.col("girth").fill_nan(None))


@pytest.fixture(scope="module")
def by_class():
    return likely.compare(["independent", "mixture"], table(), target="kind")


def test_classes_are_ranked_by_evidence_with_accuracy_beside(by_class):
    assert len(by_class.ranked) == 2
    best, last = by_class.ranked
    assert best.score > 0.8 > last.score
    assert best.evidence.kind == "exact"
    assert by_class.target == "kind"
    text = str(by_class)
    assert "accuracy" in text
    assert "kind given the rest" in text
    found = by_class.to_dict()
    assert found["target"] == "kind"
    assert found["entries"][0]["accuracy"] == best.score


def test_numbers_are_ranked_with_r_squared_beside(tmp_path):
    board = likely.compare(None, table().drop("kind"), target="height", report=tmp_path / "r.html")
    assert [entry.name for entry in board.ranked][-1] == "y alone"
    assert {"joint Mixture", "joint FactorAnalysis", "joint Generator"} <= {entry.name for entry in board.ranked}
    assert board.best.score > 0.7
    assert "R²" in str(board)
    page = (tmp_path / "r.html").read_text()
    assert "How well is height of data predicted?" in page
    assert "90% intervals hold" in page
    best = board.best.calibration
    assert best.pit.coverage(0.9).low < 0.9 < best.pit.coverage(0.9).high
    assert (best.scores["CRPS"] - board["y alone"].calibration.scores["CRPS"]).interval()[1] < 0
    assert board.to_dict()["entries"][0]["crps"] == best.scores["CRPS"].mean
    assert "R²" in page


def test_the_line_up_follows_the_target():
    data = likely.datasets.load("digits")
    classifiers = {"RBMClassifier", "PretrainedClassifier", "SupportVectorMachine"}
    assert set(predictors(data)) == {"y alone", "joint Mixture", "LinearPredictor", "NetworkPredictor"} | classifiers


def test_models_and_predictors_may_be_mixed():
    vae = likely.SemiSupervisedVAE(2, hidden=(8,), n_epochs=5)
    mixture = likely.Mixture(2)
    frame = table(120).drop_nulls()
    board = likely.compare(
        {"vae": vae, "mixture": mixture, "joint": likely.JointPredictor(mixture)}, frame, target="kind"
    )
    assert len(board.ranked) == 3
    assert board["mixture"].mean == board["joint"].mean


def test_what_cannot_be_predicted_is_refused():
    with pytest.raises(ValueError, match=r"no column 'kin'. Did you mean 'kind'\?"):
        likely.compare(None, table(), target="kin")
    with pytest.raises(ValueError, match="no labels of its own"):
        likely.compare(None, table().drop("kind"), target="label")
    with pytest.raises(ValueError, match="predicts no column"):
        likely.compare(["gan"], table(), target="kind")
    with pytest.raises(TypeError, match=r"must be a likely\.Predictor"):
        likely.compare([object()], table(), target="kind")
    text = likely.datasets.TextDataset(*[likely.Corpus(["a b"])] * 3, "lines")
    with pytest.raises(ValueError, match="is text, which has no column"):
        likely.compare(None, text, target="kind")
    rows = table(60).with_columns(kind=pl.when(pl.int_range(60) < 0).then(pl.col("kind")))
    with pytest.raises(ValueError, match="no test row"):
        likely.compare(["mixture"], rows, target="kind")


def test_the_command_line_compares_fits_scores_and_predicts(tmp_path):
    path, out = tmp_path / "trees.csv", tmp_path / "p.likely"
    table().write_csv(path)
    board = json.loads(
        succeed("compare", path, "--target", "kind", "--models", "mixture", "--no-report", "--json").stdout
    )
    assert board["entries"][0]["accuracy"] > 0.7
    said = succeed("fit", "jointpredictor", path, "--target", "height", "--out", out).stdout
    assert "R²" in said
    assert "conditional lebesgue (height | x)" in said
    assert "nats" in succeed("score", out, path).stdout
    lines = succeed("predict", out, path).stdout.splitlines()
    assert lines[0] == "height,sd(height),5%(height),95%(height)"
    low, mean, high = (float(lines[1].split(",")[place]) for place in (2, 0, 3))
    assert low < mean < high
    table().drop("height").write_csv(tmp_path / "new.csv")
    assert len(succeed("predict", out, tmp_path / "new.csv").stdout.splitlines()) == 301
    refused("score", out, tmp_path / "new.csv", words="has no column 'height'")


def test_calibration_stands_beside_predictions_of_classes(by_class, tmp_path):
    found = by_class.best.calibration
    assert found.scores["log score"].mean == pytest.approx(-by_class.best.mean, rel=1e-5)
    assert found.error.n_rows == by_class.n_rows
    line = by_class.to_dict()["entries"][0]
    assert line["brier_score"] == found.scores["Brier score"].mean
    assert line["calibration_low"] <= line["calibration_error"] <= line["calibration_high"]
    assert "calibration" in str(by_class)
    assert {"brier_score", "calibration_chance"} <= set(by_class.to_frame().columns)
    by_class.to_report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "<h2>Calibration</h2>" in page
    assert "share right" in page


def test_what_cannot_be_assessed_is_left_out():
    class Plain:
        classes_ = np.array([0, 1])

    assert prediction_calibration(Plain(), np.zeros((3, 1)), np.array([0, 1, 1])) is None
