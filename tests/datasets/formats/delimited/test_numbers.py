"""Numbers as people write them, against Python's own formatting."""

import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.datasets import DataError
from likely.datasets.formats.delimited.numbers import as_numbers, taken_apart
from likely.datasets.formats.delimited.options import TableOptions
from likely.datasets.formats.delimited.table import parse_table
from tests.datasets.checks import LOCALES, check_amounts

FRAMES = ("{}", "${}", "{} €", "€ {}", "£{}", "{}%", "CHF {}", "{} kr")


def table_of(cells: list[str], separator: str = ";", **options):
    """A table of one named column beside another, which says nothing."""
    buffer = io.StringIO()
    buffer.write(f"a{separator}b\n")
    buffer.writelines(f'"{cell}"{separator}word{i}\n' for i, cell in enumerate(cells))
    text = buffer.getvalue().encode()
    return parse_table(lambda: iter([text]), Path("table.csv"), TableOptions(**options))


def read(cells: list[str]) -> list[float]:
    return table_of(cells).frame["a"].to_list()


@settings(max_examples=40)
@given(
    st.lists(st.integers(-(10**11), 10**11), min_size=1, max_size=6),
    st.sampled_from(sorted(LOCALES)),
    st.sampled_from(FRAMES),
)
def test_amounts_come_back(cents, locale, frame):
    check_amounts(read, cents, locale, frame)


@pytest.mark.parametrize(
    ("cell", "point", "comma"),
    [
        ("$1,234.56", 1234.56, None),
        ("1.234,50", None, 1234.5),
        ("(1,234)", -1234, -1.234),
        ("($5)", -5, -5),
        ("\u22125", -5, -5),
        ("-$5", -5, -5),
        ("$-5", -5, -5),
        ("5-", -5, -5),
        ("1e5", 1e5, 1e5),
        ("12 %", 12, 12),
        ("12,34,567.8", 1234567.8, None),
        ("1.234.567", None, 1234567),
        ("0,123", None, 0.123),
        ("0.123", 0.123, None),
        (".5", 0.5, None),
        ("US$ 5", 5, 5),
        ("170 cm", 170, 170),
        ("1.5kg", 1.5, None),
        ("-14,9°C", None, -14.9),
        ("12 m", 12, 12),
        ("3 years", 3, 3),
        *(
            (cell, None, None)
            for cell in (
                "",
                "x",
                "-",
                "1.2.3",
                "(5",
                "5)",
                "--5",
                "1 2",
                "$5 €",
                "12,34.5",
                "1-2",
                "%",
                "$",
                ".",
                "12m",
                "A12",
                "5 xy",
                "€5 kg",
            )
        ),
    ],
)
def test_cells(cell, point, comma):
    parts = taken_apart(pl.Series([cell]))
    assert as_numbers(parts, ".").to_list() == [point]
    assert as_numbers(parts, ",").to_list() == [comma]


def test_whole_numbers_are_integers():
    assert table_of(["1,234", "12", "5,000,000"]).frame["a"].dtype == pl.Int64
    assert table_of(["$1.00", "$2"]).frame["a"].dtype == pl.Float64


def test_one_cell_decides_for_the_column():
    assert read(["1,234", "2,5"]) == [1.234, 2.5]
    assert read(["1,234", "2,500,000"]) == [1234, 2500000]
    assert read(["1.234", "2.5"]) == [1.234, 2.5]


def test_other_columns_decide():
    text = b"a;b\n1.234;0,5\n2.500;1,5\n"
    table = parse_table(lambda: iter([text]), Path("table.csv"), TableOptions())
    assert table.frame["a"].to_list() == [1234, 2500]
    assert "since other columns have a decimal comma; --decimal . reads it as 1.234" in " ".join(table.notes)


@pytest.mark.parametrize(
    ("cells", "separator", "decimal", "value"),
    [
        (["1,234", "5,678"], ",", None, 1234),
        (["1,234", "5,678"], ";", None, 1.234),
        (["1,234", "5,678"], ";", ".", 1234),
        (["1,234", "5,678"], ",", ",", 1.234),
        (["1.234", "5.678"], ",", None, 1.234),
        (["1.234", "5.678"], ",", ",", 1234),
    ],
)
def test_custom_or_an_option_decides_where_nothing_else_does(cells, separator, decimal, value):
    table = table_of(cells, separator, decimal=decimal)
    assert table.frame["a"][0] == value
    said = "though nothing in the file says so; --decimal" in " ".join(table.notes)
    assert said == (decimal is None)


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["1.5", "2,5"], "'1.5' on line 2 has a decimal point and '2,5' on line 3 a decimal comma"),
        (["$5", "€6"], "more than one currency or unit: '$5' on line 2, '€6' on line 3"),
        (["170 cm", "1.7 m"], "more than one currency or unit: '170 cm' on line 2, '1.7 m' on line 3"),
        (["1", "2", "x", "x"], "'x' on line 4 (and 1 other cell) is no number; --missing x reads them as unobserved"),
        (["12%", "0.12"], "only some of its numbers are percentages: '12%' on line 2, '0.12' on line 3"),
        (["1"] * 20 + ["refused"], "'refused' on line 22 is no number; --missing refused reads it as unobserved"),
        (["01234", "98765"], "'01234' is a code"),
        (["123456789012345678901", "5"], "is a code"),
    ],
)
def test_a_column_that_stays_text_says_why(cells, why):
    table = table_of(cells)
    assert table.frame["a"].to_list() == cells
    assert why in " ".join(table.notes)


def test_a_column_of_words_and_some_numbers_is_text_without_ado():
    table = table_of(["1", "2", "x", "y", "z"])
    assert table.frame["a"].dtype == pl.String
    assert table.notes == ()


def test_amounts_are_said_and_plain_numbers_are_not():
    assert table_of(["$1,234.50", "$5.10"]).notes == ("column 'a': '$1,234.50' is read as 1234.5.",)
    assert table_of(["170 cm", "165 cm"]).notes == ("column 'a': '170 cm' is read as 170.",)
    assert table_of(["12%", "0%"]).notes == ("column 'a': '12%' is read as 12 (percent).",)
    assert table_of(["1.5", "2"]).notes == ()


@pytest.mark.parametrize(
    "option", [{"decimal": ";"}, {"dates": "year"}, {"encoding": "klingon"}, {"encoding": "base64"}]
)
def test_options_that_mean_nothing(option):
    with pytest.raises(DataError, match=next(iter(option))):
        TableOptions(**option)
