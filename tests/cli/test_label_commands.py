"""The commands with labels: fit and predict; and what has no labels says so."""

import json

import numpy as np
import pytest

import likely
from tests.cli.test_commands import refused, succeed

SMALL = ("--set", "n_components=2", "--set", "hidden=[8]", "--set", "n_epochs=30", "--set", "n_importance=4")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two classes that differ in three bits; every fifth label is not there."""
    random = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("labels") / "table.csv"
    lines = ["a,b,c,animal"]
    for number in range(200):
        cat = random.random() < 0.5
        bits = random.random(3) < (0.9 if cat else 0.1)
        label = "" if number % 5 == 0 else "cat" if cat else "dog"
        lines.append(f"{','.join(str(int(bit)) for bit in bits)},{label}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def model(table):
    path = table.parent / "model.likely"
    out = succeed("fit", "semisupervisedvae", table, "--label", "animal", "--out", path, *SMALL).stdout
    assert "2 classes" in out
    assert "labels predicted" in out
    return path


def test_a_column_of_labels_is_learned_and_predicted(table, model, tmp_path):
    fitted = likely.load(model)
    assert fitted.classes_ == ["cat", "dog"]
    assert fitted.schema_.names == ("a", "b", "c")
    lines = succeed("predict", model, table).stdout.splitlines()
    assert lines[0] == "label,p(cat),p(dog)"
    known = [line.split(",")[-1] for line in table.read_text().splitlines()[1:]]
    predicted = [line.split(",")[0] for line in lines[1:]]
    right = [a == b for a, b in zip(predicted, known, strict=True) if b]
    # The best rule goes by the majority of three bits; four standard errors below it is allowed.
    best = 0.9**3 + 3 * 0.9**2 * 0.1
    assert np.mean(right) > best - 4 * np.sqrt(best * (1 - best) / len(right))
    out = tmp_path / "classes.parquet"
    assert json.loads(succeed("predict", model, table, "--out", out, "--json").stdout) == {
        "n_rows": 200,
        "out": str(out),
    }
    assert out.exists()


@pytest.mark.parametrize("name", ["linearpredictor", "supportvectormachine"])
def test_predictors_without_use_for_unlabelled_rows_learn_from_the_others(name, table, tmp_path):
    path = tmp_path / "p.likely"
    assert "labels predicted" in succeed("fit", name, table, "--target", "animal", "--out", path).stdout
    lines = succeed("predict", path, table).stdout.splitlines()
    assert lines[0] == "label,p(cat),p(dog)"
    assert len(lines) == 201
    refused("score", path, table, words="must be known, but row 0 has none")


def test_a_fitted_one_is_a_model_like_the_others(table, model):
    assert "nats" in succeed("score", model, table).stdout
    assert len(succeed("sample", model, "-n", 3).stdout.splitlines()) == 4


def test_named_data_have_labels_of_their_own(tmp_path):
    options = ("--set", "layers=[30]", "--set", "n_epochs=20", "--set", "n_pretraining_epochs=1", "--json")
    found = json.loads(
        succeed("fit", "pretrainedclassifier", "digits", "--out", tmp_path / "c.likely", *options).stdout
    )
    assert found["classes"] == list(range(10))
    data = likely.datasets.load("digits")
    y = data.labels["test"]
    assert found["test"]["n_rows"] == len(y) == 500
    assert found["test"]["accuracy"] == np.mean(likely.load(tmp_path / "c.likely").predict(data.test) == y)
    commonest = np.bincount(y).max() / len(y)  # what naming one class always would reach, and five of its errors more
    assert found["test"]["accuracy"] > commonest + 5 * np.sqrt(commonest * (1 - commonest) / len(y))
    scored = json.loads(succeed("score", tmp_path / "c.likely", "digits", "--json").stdout)
    assert scored["mean"] == found["test"]["mean"]
    assert scored["kind"] == "exact"


def test_what_has_no_labels_is_refused_before_any_work(table, model, tmp_path):
    out = ("--out", tmp_path / "m.likely")
    refused("fit", "semisupervisedvae", table, *out, words="name the column that holds them with --target")
    refused("fit", "semisupervisedvae", table, "--label", "plant", *out, words="there is no column 'plant'")
    refused("fit", "semisupervisedvae", table, "--label", "anmal", *out, words="Did you mean 'animal'?")
    refused("fit", "semisupervisedvae", "digits", "--label", "digit", *out, words="and 54 more")
    refused("fit", "vae", table, "--label", "animal", *out, words="learns without labels")
    refused("compare", table, "--models", "semisupervisedvae", words="name the column to be predicted as the target")
    mixture = tmp_path / "mixture.likely"
    succeed("fit", "mixture", table, "--out", mixture, "--set", "n_components=2")
    refused("predict", mixture, table, words="Mixture learned no labels")
