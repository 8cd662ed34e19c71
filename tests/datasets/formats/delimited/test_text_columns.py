"""Columns of words: yes and no, markers of unobserved cells, columns to leave out; and a messy file as a whole."""

import datetime as dt
from pathlib import Path

import polars as pl
import pytest

from likely.datasets import DataError
from likely.datasets.formats.delimited.options import TableOptions
from likely.datasets.formats.delimited.table import parse_table

MESSY = """\
id;Datum;Umsatz;Quote;aktiv;Alter;PLZ;Bemerkung
1;31.12.2020;1.234,50 €;12%;ja;34;01067;gut
2;01.02.2021;3,00 €;5%;nein;-999;80331;n/a
3;05.06.2021;(17,25 €);7%;ja;51;10115;unknown

4;-;-;100%;ja;-999;20095;gut
"""


def table_of(text: str, needed=None, **options):
    return parse_table(lambda: iter([text.encode()]), Path("table.csv"), TableOptions(**options), needed)


def column(cells: list[str], **options):
    return table_of("\n".join(["a;b", *(f"{cell};{i}" for i, cell in enumerate(cells))]), **options)


def test_a_messy_file():
    table = table_of(MESSY)
    assert table.frame.to_dict(as_series=False) == {
        "id": [1, 2, 3, 4],
        "Datum": [dt.date(2020, 12, 31), dt.date(2021, 2, 1), dt.date(2021, 6, 5), None],
        "Umsatz": [1234.5, 3.0, -17.25, None],
        "Quote": [12, 5, 7, 100],
        "aktiv": ["ja", "nein", "ja", "ja"],
        "Alter": [34, -999, 51, -999],
        "PLZ": ["01067", "80331", "10115", "20095"],
        "Bemerkung": ["gut", None, "unknown", "gut"],
    }
    assert table.notes == (
        "column 'Datum': '31.12.2020' is read as 2020-12-31.",
        "column 'Datum': '-' (on line 6) is read as unobserved, since all other cells are values; likewise 'Umsatz'.",
        "column 'Umsatz': '1.234,50 €' is read as 1234.5.",
        "column 'Quote': '12%' is read as 12 (percent).",
        "column 'PLZ': kept as text: '01067' is a code, for as a number it would lose digits.",
    )
    assert [table.lines[row] for row in range(4)] == [2, 3, 4, 6]


@pytest.mark.parametrize("pair", ["yes no", "Y N", "True FALSE", "on Off"])
def test_words_of_one_pair_are_true_and_false(pair):
    yes, no = pair.split()
    table = column([yes, no, "", yes, "-"])
    assert table.frame["a"].to_list() == [True, False, None, True, None]
    assert any(line.startswith("column 'a': reads ") for line in table.notes) == (pair != "True FALSE")


def test_words_of_several_spellings_are_true_and_false():
    table = column(["Yes", "n", "TRUE", "0", "y", "No"])
    assert table.frame["a"].to_list() == [True, False, True, False, True, False]
    assert table.notes == ("column 'a': reads 'true' and 'yes' and 'y' as true, 'no' and 'n' and '0' as false.",)
    assert column(["T", "F", "true"]).frame["a"].to_list() == [True, False, True]
    assert column(["1", "0"]).frame["a"].to_list() == [1, 0]


def test_durations_and_times_of_day_are_numbers():
    table = column(["1:30", "12:05", "-", "1:00:30"])
    assert table.frame["a"].to_list() == [90, 725, None, 3630]
    assert "'1:30' is read as 90: the last part counts one, each before it sixty times the next" in table.notes[0]
    assert column(["8:15 PM", "12:05 am"]).frame["a"].to_list() == [1215, 5]
    assert column(["-0:30.5", "2 days 03:00:00"]).frame["a"].to_list() == [-30.5, 183_600]
    assert "'1:75' on line 3 is no time; --missing '1:75'" in column(["1:30", "1:75", "2:10"]).notes[0]
    for cells in (["16:9", "4:3"], ["13:00 PM", "1:61"], ["a:10", "b:20"]):
        assert column(cells).frame["a"].to_list() == cells
    assert table_of("a;b\n1:30;2\n", {"a": "number"}).frame["a"].to_list() == [90]


def test_whole_numbers_that_are_all_days_are_dates():
    table = column(["20201231", "-", "20190101"])
    assert table.frame["a"].to_list() == [dt.date(2020, 12, 31), None, dt.date(2019, 1, 1)]
    assert table.notes[1] == "column 'a': '20201231' is read as 2020-12-31."
    for cells in ([20201231, 20191301], [20201231, 20201231], [2020123, 2019010]):
        assert column(cells).frame["a"].to_list() == cells
    assert table_of("a;b\n20201231;2\n20200101;2\n", {"a": "number"}).frame["a"].to_list() == [20201231, 20200101]
    assert table_of("a;b\n20201231;2\n", {"a": "date"}).frame["a"].to_list() == [dt.date(2020, 12, 31)]
    with pytest.raises(DataError, match=r"line 3: column 'a' holds '2020123', and needed is a date"):
        table_of("a;b\n20201231;2\n2020123;2\n", {"a": "date"})


@pytest.mark.parametrize("cells", [["yes", "no", "unknown"], ["y", "t"], ["m", "f"], ["yes", "no", "maybe"]])
def test_other_words_are_words(cells):
    assert column(cells).frame["a"].to_list() == cells


def test_markers_are_unobserved_beside_values_only():
    assert column(["1", "-", "3"]).frame["a"].to_list() == [1, None, 3]
    assert column(["1", "unknown", "3"]).frame["a"].to_list() == [1, None, 3]
    table = column(["red", "-", "unknown", "-"])
    assert table.frame["a"].to_list() == ["red", None, "unknown", None]
    assert "'-' (on line 3, 2 such cells) is read as unobserved" in table.notes[0]
    for cells in (["red", "-", "."], ["A", "-", "+"], ["-", "!"]):  # Among signs, each may say something.
        assert column(cells).frame["a"].to_list() == cells
    assert column(["-", "-"]).frame["a"].to_list() == ["-", "-"]
    assert column(["red", "#DIV/0!", "n/a"]).frame["a"].to_list() == ["red", None, None]
    assert column(["none", "mild", "severe"]).frame["a"].to_list() == ["none", "mild", "severe"]
    assert column(["1.5", "None", "2"]).frame["a"].to_list() == [1.5, None, 2]


@pytest.mark.parametrize("missing", ["refused,-999", ["refused", -999], ["refused", "-999"]])
def test_markers_of_your_own(missing):
    assert column(["1", "refused", "-999", "-999.0"], missing=missing).frame["a"].to_list() == [1, None, None, None]
    assert column(["red", "refused"], missing=missing).frame["a"].to_list() == ["red", None]
    assert column(["$5", "$-999"], missing=missing).frame["a"].to_list() == [5, None]


def test_columns_to_leave_out():
    assert table_of("a,b,c\n1,2,3\n", drop="a,c").frame.columns == ["b"]
    assert table_of("a,b,c\n1,2,3\n", drop=["a"]).frame.columns == ["b", "c"]
    with pytest.raises(DataError, match=r"has no column 'aa' to drop\. Did you mean 'a'"):
        table_of("a,b\n1,2\n", drop="aa")
    with pytest.raises(DataError, match="all of its columns are dropped"):
        table_of("a,b\n1,2\n", drop="a,b")


def test_what_is_needed_is_read_or_refused_with_its_line():
    assert table_of("a,b\n1,yes\n2,no\n", {"a": "text", "b": "text"}).frame.rows() == [("1", "yes"), ("2", "no")]
    with pytest.raises(
        DataError, match=r"line 3: column 'a' holds 'x', and needed is a number: correct it, or read it"
    ):
        table_of("a,b\n1,2\nx,4\ny,5\n", {"a": "number"})
    with pytest.raises(DataError, match=r"line 2: column 'a' holds 'x', and needed is a date"):
        table_of("a,b\nx,2\n2020-01-01,4\n", {"a": "date"})
    assert table_of("a,b\n,2\n,4\n", {"a": "number"}).frame["a"].to_list() == [None, None]


def test_names_that_are_numbers_are_known_by_a_table_to_be_like():
    years = "2019,2020\n1.5,2.5\n3.5,4.5\n"
    assert table_of(years).frame.columns == ["x0", "x1"]
    assert table_of(years, {"2019": "number", "2020": "number"}).frame.rows() == [(1.5, 2.5), (3.5, 4.5)]


def test_many_columns_read_alike_share_a_line():
    names = [f"c{i}" for i in range(8)]
    table = table_of(",".join(names) + "\n" + ",".join(["$5.5"] * 8) + "\n")
    assert table.frame.dtypes == [pl.Float64] * 8
    assert table.notes == ("column 'c0': '$5.5' is read as 5.5; likewise 'c1', 'c2', 'c3', 'c4' and 3 more.",)


def test_a_table_without_names_says_so():
    assert table_of("1,2\n3,4\n").notes == (
        "line 1 looks like data, so the columns are called x0 to x1; --header reads it as names.",
    )
    assert table_of("1,2\n3,4\n", header=False).notes == ()
