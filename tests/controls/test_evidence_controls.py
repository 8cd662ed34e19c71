"""Planted bugs in what an evidence knows of itself, caught by the checks that the library passes."""

import math

import numpy as np
import pytest

import likely
from likely.contract import evidence as evidences
from likely.contract import fingerprint as fingerprints
from likely.contract.evidence import Difference, Evidence
from likely.schema import Measure
from tests.contract.evidence_checks import (
    check_kinds_of_differences,
    check_limits_hold,
    check_readings_of_a_bit,
    check_slices,
    check_values_are_named,
)


def test_a_measure_that_is_only_its_word_is_caught(monkeypatch):
    monkeypatch.setattr(Measure, "__eq__", str.__eq__)
    with pytest.raises(AssertionError, match="a density and a probability of one bit are compared"):
        check_readings_of_a_bit()


def test_a_measure_that_forgets_one_of_two_operators_is_caught(monkeypatch):
    """`!=` of str compares words, and it is what comparisons ask."""
    monkeypatch.setattr(Measure, "__ne__", str.__ne__)
    with pytest.raises(AssertionError, match="a density and a probability of one bit are compared"):
        check_readings_of_a_bit()


def test_a_name_of_codes_is_caught(monkeypatch):
    monkeypatch.setattr(fingerprints, "_values", lambda column: None)
    with pytest.raises(AssertionError, match=r"rows of \(a, b\) and of \(b, c\) have one name"):
        check_values_are_named()


def test_a_name_of_all_categories_is_caught(monkeypatch):
    of = fingerprints.Fingerprint.of.__func__

    def with_categories(cls, rows, columns=(), about=""):
        return of(cls, rows, columns, about + str([column.categories for column in columns]))

    monkeypatch.setattr(fingerprints.Fingerprint, "of", classmethod(with_categories))
    with pytest.raises(AssertionError, match="what else might have been in them"):
        check_values_are_named()


def test_a_name_that_forgets_its_columns_is_caught(monkeypatch):
    monkeypatch.setattr("likely.contract.model.named_columns", lambda names: "")
    with pytest.raises(AssertionError, match="columns of other names have one name"):
        check_values_are_named()


def test_a_name_that_depends_on_the_kind_is_caught(monkeypatch):
    of = fingerprints.Fingerprint.of.__func__

    def with_kinds(cls, rows, columns=(), about=""):
        return of(cls, rows, columns, about + str([column.kind for column in columns]))

    monkeypatch.setattr(fingerprints.Fingerprint, "of", classmethod(with_kinds))
    with pytest.raises(AssertionError, match="the rows are the same, however they are read"):
        check_readings_of_a_bit()


def test_a_name_of_the_place_of_rows_is_caught(monkeypatch):
    """Rows that are hashed one after the other, each with what came before."""
    hashed = fingerprints._hash_rows
    monkeypatch.setattr(fingerprints, "_hash_rows", lambda rows, values: np.cumsum(hashed(rows, values)))
    rows = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(AssertionError, match="not the evidence of the slice"):
        check_slices(likely.Independent().fit(rows).evidence, rows, [5, 1])


def test_a_difference_that_goes_by_its_limits_alone_is_caught(monkeypatch):
    kind = Difference.kind.fget

    def by_limits(self):
        return "exact" if math.isclose(self.lower, self.mean) and math.isclose(self.upper, self.mean) else kind(self)

    monkeypatch.setattr(Difference, "kind", property(by_limits))
    with pytest.raises(AssertionError, match="a difference of sampled values is called exact"):
        check_kinds_of_differences()


@pytest.mark.parametrize("share", [0.0, 0.25], ids=["raw", "a quarter"])
def test_limits_without_their_error_are_caught(share, monkeypatch):
    rng = np.random.default_rng(0)
    truth, noise = np.zeros(200), rng.normal(size=(200, 32))
    values = noise.mean(axis=1)
    evidence = Evidence.estimate(values, values - 0.05, values + 0.05, replicates=noise, method="test")
    check_limits_hold(evidence, truth)
    widen = evidences._widen
    monkeypatch.setattr(
        evidences, "_widen", lambda low, high, stderr, level: widen(low, high, np.multiply(share, stderr), level)
    )
    with pytest.raises(AssertionError, match="hold the truth"):
        check_limits_hold(evidence, truth)
