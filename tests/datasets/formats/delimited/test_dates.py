"""Dates and times as people write them, against Python's strftime."""

import datetime as dt
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.datasets.formats.delimited.options import TableOptions
from likely.datasets.formats.delimited.table import parse_table

DATES = st.dates(dt.date(1970, 1, 1), dt.date(2068, 12, 31))
MOMENTS = st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2068, 12, 31)).map(
    lambda moment: moment.replace(microsecond=0)
)


def table_of(cells: list[str], **options):
    text = "\n".join(["a;b", *(f"{cell};w{i}" for i, cell in enumerate(cells))]).encode()
    return parse_table(lambda: iter([text]), Path("table.csv"), TableOptions(**options))


@settings(max_examples=25)
@given(
    st.lists(DATES, min_size=1, max_size=5),
    st.sampled_from(
        [
            ("%Y-%m-%d", None), ("%Y/%m/%d", None), ("%d.%m.%Y", None), ("%d/%m/%Y", "day"), ("%m/%d/%Y", "month"),
            ("%d-%m-%y", "day"), ("%m/%d/%y", "month"), ("%d %b %Y", None), ("%B %d, %Y", None), ("%d-%b-%y", None),
        ]
    ),
)  # fmt: skip
def test_dates_come_back(days, how):
    form, first = how
    cells = table_of([day.strftime(form) for day in days], dates=first).frame["a"]
    assert cells.dtype == pl.Date
    assert cells.to_list() == days


@settings(max_examples=25)
@given(
    st.lists(MOMENTS, min_size=1, max_size=5),
    st.sampled_from(
        [
            ("%Y-%m-%d %H:%M:%S", None), ("%Y-%m-%dT%H:%M:%SZ", None), ("%d/%m/%Y %H:%M:%S", "day"),
            ("%m/%d/%Y %I:%M:%S %p", "month"), ("%d.%m.%Y %H:%M:%S", None), ("%Y-%m-%d %H:%M:%S+00:00", None),
        ]
    ),
)  # fmt: skip
def test_moments_come_back(moments, how):
    form, first = how
    cells = table_of([moment.strftime(form) for moment in moments], dates=first).frame["a"]
    assert cells.dtype == pl.Datetime("us")
    assert cells.to_list() == moments


def test_one_cell_decides_for_the_column_and_one_column_for_the_file():
    table = table_of(["03/04/2020", "31/12/2020"])
    assert table.frame["a"].to_list() == [dt.date(2020, 4, 3), dt.date(2020, 12, 31)]
    assert table.notes == ("column 'a': '31/12/2020' is read as 2020-12-31, day first.",)
    text = b"a,b\n03/04/2020,31/12/2020\n05/07/2020,01/01/2020\n"
    table = parse_table(lambda: iter([text]), Path("table.csv"), TableOptions())
    assert table.frame["a"][0] == dt.date(2020, 4, 3)
    assert "day first, as in other columns; --dates month reads it as 2020-03-04" in " ".join(table.notes)


def test_days_that_never_change_are_days():
    table = table_of(["01/02/2020", "01/03/2020", "01/04/2020"])
    assert table.frame["a"][0] == dt.date(2020, 2, 1)
    assert "since the day never changes" in table.notes[0]
    assert table_of(["02/01/2020", "03/01/2020"]).frame["a"][0] == dt.date(2020, 2, 1)


def test_custom_or_an_option_decides_where_nothing_else_does():
    cells = ["03/04/2020", "05/07/2020"]
    table = table_of(cells)  # with semicolons between the cells
    assert table.frame["a"][0] == dt.date(2020, 4, 3)
    assert "day first, though nothing in the file says so; --dates month reads it as 2020-03-04" in table.notes[0]
    assert table_of(cells, dates="month").frame["a"][0] == dt.date(2020, 3, 4)
    text = b"a,b\n03/04/2020,x\n05/07/2020,y\n"
    assert parse_table(lambda: iter([text]), Path("t.csv"), TableOptions()).frame["a"][0] == dt.date(2020, 3, 4)


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["13/04/2020", "04/13/2020"], "'13/04/2020' on line 2 has its day first and '04/13/2020' on line 3 its month"),
        (["2020-01-01"] * 20 + ["2020-02-30"], "'2020-02-30' on line 22 is no date; --missing 2020-02-30"),
        (["2020-01-01 10:00:00"] * 20 + ["2020-01-01 25:00:00"], "is no date"),
    ],
)
def test_a_column_that_stays_text_says_why(cells, why):
    table = table_of(cells)
    assert table.frame["a"].to_list() == cells
    assert why in " ".join(table.notes)


def test_offsets_become_utc_and_say_so():
    table = table_of(["2020-12-31 23:30:00+02:00", "2020-12-31 23:30:00-0530"])
    assert table.frame["a"].to_list() == [dt.datetime(2020, 12, 31, 21, 30), dt.datetime(2021, 1, 1, 5, 0)]
    assert "in UTC" in table.notes[0]


def test_markers_beside_dates_are_unobserved():
    table = table_of(["2020-12-31", "-", "unknown", "2020-01-01"])
    assert table.frame["a"].to_list() == [dt.date(2020, 12, 31), None, None, dt.date(2020, 1, 1)]
    assert "'-' (on line 3, 2 such cells) is read as unobserved" in table.notes[0]


def test_plain_iso_dates_need_no_remark():
    assert table_of(["2020-12-31", "2020-01-02"]).notes == ()
