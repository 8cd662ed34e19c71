"""What y is: classes, a number, several columns; by value and by name."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from likely.contract.target import MAX_CLASSES_OF_NUMBERS, Target, split_target


def read(y, **options):
    return Target.of(y, len(y), whose="It", **options)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b"], ["a", "b"]),
        ([True, False, True], [False, True]),
        (np.array([3, 1, 3]), [1, 3]),
        ([1.0, 0.0, np.nan], [0.0, 1.0]),
        (pl.Series("kind", ["x", None, "y"]), ["x", "y"]),
        (pl.Series("kind", [2, None, 5]), [2.0, 5.0]),
        (pd.Series(["x", None, "y"]), ["x", "y"]),
        (pd.Series(["x", "y"], dtype="category"), ["x", "y"]),
        (pd.Series([1, 2], dtype="Int64"), [1, 2]),
        ([-1, 0, 1], [-1, 0, 1]),
    ],
)
def test_classes(y, classes):
    target, codes = read(y)
    assert target.classes.tolist() == classes
    known = ~np.isnan(codes[:, 0])
    given = [v for v in (y.to_list() if hasattr(y, "to_list") else list(y)) if v is not None and v == v]
    assert target.values(codes[known]).tolist() == given


@pytest.mark.parametrize("y", [[0.5, 1.5, np.nan], np.arange(MAX_CLASSES_OF_NUMBERS + 1), pl.Series([1.25, None, 3.0])])
def test_numbers(y):
    target, numbers = read(y)
    assert target.classes is None
    assert target.schema.kinds == ("real",)
    back = target.values(numbers)
    np.testing.assert_allclose(back, np.array([np.nan if v is None else v for v in list(y)], float))


def test_the_rule_for_whole_numbers_can_be_overruled():
    assert read([0, 1, 2] * 3, kind="number")[0].classes is None
    assert len(read(np.arange(90) // 3, kind="class")[0].classes) == 30
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        read([0.5, 1.5], kind="class")


def test_minus_one_may_stand_for_unknown():
    assert np.isnan(read([-1, 0, 1, 0], minus_is_unknown=True)[1][0, 0])
    assert not np.isnan(read([-1, 1, 1], minus_is_unknown=True)[1]).any()  # two classes, and no other reading


def test_several_columns_are_read_one_by_one():
    target, encoded = read(np.array([[0.5, 1], [1.5, 0], [2.5, 1]]))
    assert target.schema.kinds == ("real", "binary")
    assert not target.is_column
    np.testing.assert_array_equal(target.values(encoded), [[0.5, 1], [1.5, 0], [2.5, 1]])
    frame = pl.DataFrame({"a": ["x", "y", None], "b": [1.5, 2.5, 3.5]})
    target, encoded = read(frame)
    assert target.values(encoded).equals(frame)


@pytest.mark.parametrize("y", [["b", "a"], [0.5, 2.5], np.array([[0.5, 1], [1.5, 0]]), [7, 9]])
def test_it_survives_a_file(y):
    target, encoded = read(y)
    again = Target.from_json(target.to_json())
    np.testing.assert_array_equal(again.values(encoded), target.values(encoded))
    np.testing.assert_array_equal(again.encode(y, 2), encoded)
    assert (again.classes is None) == (target.classes is None)
    if again.classes is not None:
        assert again.classes.dtype == target.classes.dtype


def test_columns_are_taken_by_name():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [0.5, 1.5, 2.5]}, index=[5, 6, 7])
    X, y, name = split_target(frame, "b")
    assert list(X.columns) == ["a", "c"]
    assert list(y) == ["x", "y", "z"]
    assert name == "b"
    X, y, name = split_target(frame, ["b", "c"])
    assert list(X.columns) == ["a"]
    assert list(y.columns) == ["b", "c"]
    X, y, _ = split_target(frame, ["x", "y", "z"])  # as many as there are rows: values, not names
    assert X is frame
    assert y == ["x", "y", "z"]
    with pytest.raises(ValueError, match="nothing to predict from"):
        split_target(frame[["a"]], "a")
    assert split_target(frame, pd.Series([1, 2, 3], name="weight"))[2] == "weight"


def test_values_that_contradict_the_fit_are_refused():
    number = read([0.5, 1.5, 2.5])[0]
    with pytest.raises(ValueError, match="must be numbers, as they were in fit, got 'x'"):
        number.encode(["x"], 1)
    with pytest.raises(ValueError, match="must be known, but row 1 has none"):
        number.encode([0.5, np.nan], 2)
    with pytest.raises(ValueError, match="contains infinity, in row 0"):
        number.encode([np.inf], 1)
    with pytest.raises(ValueError, match="as many"):
        number.encode([0.5], 2)
