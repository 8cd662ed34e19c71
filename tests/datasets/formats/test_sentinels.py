from pathlib import Path

import numpy as np
import polars as pl
import pytest

from likely.datasets import DataError, load, read_table
from likely.datasets.formats.sentinels import without_sentinels
from tests.datasets.files import write


def found(cells: list, keep: bool = False) -> tuple[list, str]:
    frame, notes = without_sentinels(pl.DataFrame({"a": cells}, strict=False), keep)
    return frame["a"].to_list(), " ".join(notes)


def test_negative_codes_among_numbers_that_are_not_negative():
    cells, said = found([5, -999, 3, -999, 40])
    assert cells == [5, None, 3, None, 40]
    assert "-999 (2 times) is read as unobserved, since all other numbers are 0 or more; --missing NA keeps it" in said


def test_several_codes():
    cells, said = found([5.5, -99.0, -99.0, -9999.0, -9999.0, 1.25])
    assert cells == [5.5, None, None, None, None, 1.25]
    assert "-9999 (2 times)" in said
    assert "-99 (2 times)" in said


def test_codes_of_one_digit():
    assert found([5.5, -9.0, 3.0, -9.0, -8.0, -8.0])[0] == [5.5, None, 3.0, None, None, None]
    cells, said = found([-1, 0, 1, -1, -9, -9])
    assert cells == [-1, 0, 1, -1, None, None]
    assert "-1 (" not in said
    assert found([2, -9, 30, -1]) == (
        [2, -9, 30, -1],
        "column 'a': -9 (once) may stand for unobserved cells; --missing=-9 reads it so. "
        "column 'a': -1 (once) may stand for unobserved cells; --missing=-1 reads it so.",
    )
    scale = list(range(-9, 10)) * 2
    assert found(scale) == (scale, "")


@pytest.mark.parametrize(
    "cells",
    [
        [5, -999, 3, 40],  # once
        [5, -1, 300, -1],  # a digit, alone
        [5, 999, 3, 999, 40],  # positive, and far from the others
        [-5, -9999, 3, -9999, 40],  # beside other negative ones
    ],
)
def test_what_may_be_a_code_is_mentioned_only(cells):
    assert found(cells)[0] == cells
    assert "may stand for unobserved cells; --missing=" in found(cells)[1]


@pytest.mark.parametrize(
    "cells",
    [
        [5, 3, 40],
        [98, 99, 99, 97, 1],
        [-99, -99, -98, -120, -50, 0],
        [-1, -1, 5],
        [-1, 0, 1, -1, 0],
        [-2, -1, 0, 1, 20],
        [999, 999],
        [None, None],
        [0.5, None],
    ],
)
def test_other_numbers_are_numbers(cells):
    assert found(cells) == (cells, "")


def test_a_code_of_one_column_is_one_of_the_others_too():
    frame, notes = without_sentinels(
        pl.DataFrame({"a": [5, -999, 3], "b": [-999.0, 7.5, 1.0], "c": [-5, -999, 3]}), False
    )
    assert frame.rows() == [(5, None, -5), (None, 7.5, -999), (3, 1.0, 3)]
    assert "'a': -999 (once) is read as unobserved" in " ".join(notes)


def test_naming_what_is_missing_decides():
    assert found([5, -999, -999], keep=True)[0] == [5, -999, -999]


def test_in_files(tmp_path):
    rows = [f"{i % 4},{-999 if i % 5 == 0 else 20 + i * i % 37}" for i in range(1, 31)]
    path = write(tmp_path / "table.csv", "\n".join(["rooms,age", *rows]))
    data = load(path)
    assert sum(part["age"].null_count() for part in (data.train, data.valid, data.test)) == 6
    assert "-999 (6 times)" in " ".join(data.notes)
    assert load(path, missing="NA").train["age"].min() == -999
    pl.DataFrame({"a": [1, 2, -999], "b": ["x", "refused", "y"]}).write_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", missing=["refused", -999]).frame.rows() == [
        (1, "x"),
        (2, None),
        (None, "y"),
    ]
    assert read_table(tmp_path / "t.parquet", drop="a").frame.columns == ["b"]
    np.save(tmp_path / "t.npy", np.array([[1, -999], [2, 3]]))
    assert np.isnan(read_table(tmp_path / "t.npy", missing=-999).frame).sum() == 1


@pytest.mark.parametrize("cell", ["inf", "-inf", "1e300", "1e999"])
def test_numbers_without_end_are_refused_with_their_line(tmp_path, cell):
    path = write(tmp_path / "table.csv", f"a,b\n1,2\n\n3,{cell}\n4.5,5\n")
    with pytest.raises(DataError, match=r"table\.csv, line 4: column 'b' holds .*--missing=") as refusal:
        read_table(path)
    assert ("power of ten" in str(refusal.value)) == (cell == "1e300")  # which helps no infinite number
    assert read_table(path, missing=cell).frame["b"].to_list() == [2, None, 5]


def test_numbers_without_end_in_parquet(tmp_path):
    pl.DataFrame({"a": [1.0, float("nan"), float("inf")]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"row 3: column 'a' holds inf, which is not finite"):
        read_table(tmp_path / "t.parquet")


def test_options_of_text_are_for_text(tmp_path: Path):
    np.save(tmp_path / "t.npy", np.ones((3, 2)))
    with pytest.raises(DataError, match="is no CSV file, which alone has a decimal: leave out --decimal"):
        load(tmp_path / "t.npy", decimal=",")
    with pytest.raises(DataError, match="columns have no names to drop"):
        load(tmp_path / "t.npy", drop="a")
    with pytest.raises(TypeError, match="no option 'sep': it has decimal, missing, header"):
        read_table(tmp_path / "t.npy", sep=";")
