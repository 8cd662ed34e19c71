"""Files that version 0.1.0 wrote, as it was before settings were declared as fields, load and answer as they did then.

`written_by_0_1_0/answers.json` has, for each file, what was asked and what was answered by the version that wrote it.
Neither the files nor the answers are ever written anew: they are the promise that a model saved once can be read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import likely
from likely.contract.settings import settings_of
from likely.storage import registry
from likely.storage.files import read_arrays
from likely.storage.modules import restore_value

FOLDER = Path(__file__).with_name("written_by_0_1_0")
RECORD = json.loads((FOLDER / "answers.json").read_text())
NAMES = list(RECORD["files"])

# Closed forms that are read off tables give the same bits. All else is added up by XLA or BLAS in single precision, in
# an order that depends on the processor's vectors and on the compiler's options: it is the same to 1e-5 of the largest
# number of an answer, a hundred roundings of 6e-8. Words, labels and bits are the same in either case.
EXACT = {"Independent", "Independent_mixed", "NGram"}
ROUNDING = 1e-5
# What draws categories takes other random numbers since they are drawn by one uniform number a cell. The law is the
# same: annealed evidence is the same within its Monte Carlo error, and drawn words are words that the column has.
REDRAWN = {("EnergyModel_mixed", "score_samples"), ("GAN_mixed", "sample")}
PAIRS = {entry.class_name for entry in registry.learning_from("pairs")}


def asked(name: str, model: Any) -> Any:
    """The question to a file's model, as its methods take it."""
    kind = RECORD["files"][name]["question"]
    question = RECORD["questions"][kind]
    if kind in ("binary", "real"):
        return np.array(question, float)
    if kind == "mixed":
        return pl.DataFrame(question).select(model.feature_names_in_)
    if kind == "NeuralTuringMachine":
        return [[np.array(bits) for bits in side] for side in question]
    return question


def answer(model: Any, verb: str, question: Any) -> Any:
    if verb == "vectors":
        return model.params_.vectors
    if verb == "log_prob":
        return model.log_prob(*question)
    if verb == "predict" and type(model).__name__ in PAIRS:
        return model.predict(question[0])
    if verb in ("sample", "most_similar"):
        return model.sample(2) if verb == "sample" else model.most_similar(question, n=2)
    return getattr(model, verb)(question)


def cells(value: Any) -> list:
    """All numbers and words of an answer, in order."""
    if isinstance(value, pl.DataFrame):
        value = value.to_dicts()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [cell for part in value for cell in cells(part)]
    return np.asarray(value).ravel().tolist()


def test_every_estimator_of_then_has_a_file():
    """But for the classifier by an RBM, of which only the machine could be saved. None of the others may go away."""
    written = {name.removesuffix("_mixed") for name in NAMES}
    assert len(written) == 26
    assert written < {entry.class_name for entry in registry.ENTRIES}
    assert {path.stem for path in FOLDER.glob("*.likely")} == set(NAMES)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300_000


@pytest.mark.parametrize("name", NAMES)
def test_an_old_file_has_every_setting_that_it_was_written_with(name):
    meta = read_arrays(FOLDER / f"{name}.likely")[1]
    model = likely.load(FOLDER / f"{name}.likely")
    assert type(model).__name__ == meta["class"] == name.removesuffix("_mixed")
    written = {setting: restore_value(value) for setting, value in meta["parameters"].items()}
    assert written.keys() <= settings_of(type(model)).keys()
    assert {setting: getattr(model, setting) for setting in written} == written
    model._validate_params()


@pytest.mark.parametrize("name", NAMES)
def test_an_old_file_answers_as_it_did(name):
    model = likely.load(FOLDER / f"{name}.likely")
    question = asked(name, model)
    answers = RECORD["files"][name]["answers"]
    assert answers
    for verb, expected in answers.items():
        if (name, verb) in REDRAWN:
            assert_is_of_the_same_law(model, verb, question, expected)
            continue
        got, wanted = cells(answer(model, verb, question)), cells(expected)
        if name in EXACT:
            assert got == wanted, verb
            continue
        assert [cell for cell in got if isinstance(cell, str)] == [cell for cell in wanted if isinstance(cell, str)]
        assert_same_numbers(*([cell for cell in some if not isinstance(cell, str)] for some in (got, wanted)), verb)


def assert_same_numbers(numbers: list, known: list, verb: str) -> None:
    largest = max(map(abs, known), default=1)
    np.testing.assert_allclose(numbers, known, rtol=ROUNDING, atol=ROUNDING * largest, err_msg=verb)


def assert_is_of_the_same_law(model: Any, verb: str, question: Any, expected: Any) -> None:
    if verb == "score_samples":
        evidence = model.evidence(question)
        assert (np.abs(evidence.values - expected) < 5 * np.sqrt(2) * evidence.stderr).all()  # both have this error
        return
    drawn, known = model.sample(len(expected)), pl.DataFrame(expected)
    words = [name for name, dtype in known.schema.items() if dtype == pl.String]
    assert_same_numbers(cells(drawn.drop(words)), cells(known.drop(words)), verb)
    for column in model.schema_.columns:
        assert column.name not in words or set(drawn[column.name]) <= set(column.categories)
