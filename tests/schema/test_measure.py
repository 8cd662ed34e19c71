"""Measures: a word for people, and which columns are densities for comparisons."""

import copy
import json
import operator
import pickle

import pytest

from likely.schema import Column, Measure, Schema


def of(*kinds: str, names: str = "abcdefgh") -> Measure:
    columns = (Column(name, kind) for name, kind in zip(names, kinds, strict=False))
    return Schema(tuple(columns)).measure


def test_a_measure_is_its_word():
    assert (of("real", "real"), of("binary", "count"), of("real", "binary")) == ("lebesgue", "counting", "mixed")
    assert "mixed" == of("real", "binary") != "counting"
    assert json.dumps([of("real", "binary")]) == '["mixed"]'
    assert {"mixed": 1}[of("real", "binary")] == 1
    assert f"{of('real')} measure" == "lebesgue measure"


def test_measures_are_equal_when_they_agree_on_every_column():
    one, other = of("real", "binary"), of("binary", "real")
    assert one == of("real", "count")
    # str has both operators, and each must be our own
    assert operator.ne(one, other) is True
    assert operator.eq(one, other) is False
    assert operator.ne(one, of("real", "count")) is False
    assert len({one, other, of("real", "binary")}) == 2
    assert one == of("real", "binary", names="xy")  # names are for people


def test_words_alone_say_what_they_can():
    assert Measure("counting") == of("binary")
    assert Measure("lebesgue") == of("real", "real")
    assert Measure("mixed") == Measure("mixed")
    assert Measure("mixed") != of("real", "binary")
    assert "does not say which" in Measure("mixed").unlike(of("real", "binary"))
    assert (Measure("counting").densities, Measure("mixed").densities) == ((), None)


def test_conditional_measures_are_unlike_others():
    one, other = of("real", "binary").conditional("a, b"), of("binary", "real").conditional("a, b")
    assert one == "conditional mixed (a, b | x)"
    assert one != other
    assert one != of("real", "binary")
    assert one != of("real", "binary").conditional("c")


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (("real", "real", "real", "real"), "column 'b' is a density in one and a probability in the other"),
        (
            ("binary", "real", "real", "real"),
            "column 'a' is a density in one and a probability in the other, and so is",
        ),
        (("binary", "real", "binary", "binary"), "and so are column 'b', column 'c' and column 'd'"),
    ],
)
def test_the_columns_that_differ_are_named(kinds, said):
    assert said in of("real", "binary", "real", "real").unlike(of(*kinds))


def test_many_columns_are_counted():
    assert "and so are column 'b', column 'c' and 5 others" in of(*["real"] * 8).unlike(of(*["binary"] * 8))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_know_the_columns(again):
    one = of("real", "binary")
    assert again(one) == one != of("binary", "real")
    assert again(one).densities == ("a",)
