import io
import math
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.datasets import DataError
from likely.datasets.formats.csv_and_parquet import parse_csv, read_csv, read_parquet
from tests.datasets.checks import check_every_row_counted
from tests.datasets.files import write

PATH = Path("table.csv")
MIXED = b"age,sex,score,smokes\n31,f,0.5,True\n44,m,?,False\n, f ,1e-3,\n"


def parse(text: str | bytes, **options):
    return parse_csv(text.encode() if isinstance(text, str) else text, PATH, **options)


def test_types_and_holes():
    table = parse(MIXED)
    assert table.schema == {"age": pl.Int64, "sex": pl.String, "score": pl.Float64, "smokes": pl.Boolean}
    assert table.rows() == [(31, "f", 0.5, True), (44, "m", None, False), (None, "f", 1e-3, None)]


def test_types_come_from_all_rows():
    # A reader that looks at the first rows only would call these integers.
    table = parse("a,b\n" + "1,1\n" * 20_000 + "1.5,x\n")
    assert table.schema == {"a": pl.Float64, "b": pl.String}


def test_gzip(tmp_path):
    assert read_csv(write(tmp_path / "table.csv.gz", MIXED)).frame.equals(parse(MIXED))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_found(separator):
    table = parse(MIXED.decode().replace(",", separator))
    assert table.equals(parse(MIXED))
    assert parse(MIXED.decode().replace(",", separator), separator=separator).equals(table)


@pytest.mark.parametrize("ending", ["\r\n", "\n\n", "\r\n\r\n"])
def test_line_ends_and_blank_lines(ending):
    assert parse(MIXED.decode().replace("\n", ending)).equals(parse(MIXED))
    assert parse("\n" + MIXED.decode()).equals(parse(MIXED))
    quoted = MIXED.decode().replace("sex", '"sex"').replace("\n", ending)
    assert parse(quoted).equals(parse(MIXED))


def test_a_byte_order_mark_is_no_name():
    assert parse(b"\xef\xbb\xbf" + MIXED).columns[0] == "age"


def test_a_single_column_has_holes_where_lines_are_blank():
    assert parse("a\n1\n\n3\n\n")["a"].to_list() == [1, None, 3]


def test_quoted_cells():
    table = parse('name,note\nx,"one, two"\ny,"three\nfour"\nz,"a ""b"""\n')
    assert table["note"].to_list() == ["one, two", "three\nfour", 'a "b"']


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n", ["a", "b"]),
        ("1,2\n3,4\n", ["x0", "x1"]),
        ("39, State-gov\n50, Private\n", ["x0", "x1"]),
        ("0,1\n1,0\n", ["x0", "x1"]),
        ("0,1,2\n1,0,5\n", ["0", "1", "2"]),
        ("colour,size\nred,big\nblue,small\n", ["colour", "size"]),
        ("p,x,p\ne,x,s\np,b,s\n", ["x0", "x1", "x2"]),
        ("red,big\nblue,big\n", ["x0", "x1"]),
        ("?,b\n1,2\n", ["x0", "x1"]),
        ("country,2019,2020\nA,1,2\nB,3,4\n", ["country", "2019", "2020"]),
        ("country,2019,2020\nA,2010,2011\nB,2012,2013\n", ["x0", "x1", "x2"]),  # years over years are data
        ("Paris,2019,2020\nParis,1,2\n", ["x0", "x1", "x2"]),
        ("subject,1,2,3\na,0.5,0.1,0.7\nb,0.2,0.4,0.9\n", ["subject", "1", "2", "3"]),
        ("a,1,2,3\nb,4,5,6\n", ["x0", "x1", "x2", "x3"]),
        ("2020-01-01,x\n2020-01-02,y\n", ["x0", "x1"]),
        ("$5,x\n$6,y\n", ["x0", "x1"]),
        ("a,b,\n1,2,\n3,4,\n", ["a", "b", "x2"]),  # a comma at the end of each line
        ("colour,size,\nred,big,\nblue,small,\n", ["colour", "size", "x2"]),
        ("country,2019,2020,\nA,1,2,\nB,3,4,\n", ["country", "2019", "2020", "x3"]),
        ("a,,b\n1,2,3\n4,5,6\n", ["x0", "x1", "x2"]),  # a column of numbers without a name
    ],
)
def test_headers_are_told_from_data(text, names):
    assert parse(text).columns == names


def test_header_by_order():
    assert parse("a,b\nc,d\n", header=False).rows() == [("a", "b"), ("c", "d")]
    assert parse("1,2\n3,4\n", header=True).columns == ["1", "2"]


def test_two_columns_of_one_name():
    with pytest.raises(
        DataError, match=r"line 2 has two columns called 'a', the 1st and the 3rd: rename one, or give --no-"
    ):
        parse("\na,b,a\n1,2,3\n")
    with pytest.raises(DataError, match=r"line 1 has two columns called 'flow', the 4th and the 5th"):
        parse("country,2019,2020,flow,flow,\nA,1,2,.5,.6,\nB,3,4,.7,.8,\n")


def test_a_column_of_row_numbers_is_dropped():
    assert parse(",a\n0,5\n1,6\n").columns == ["a"]
    assert parse(",a\n1,5\n2,6\n").columns == ["a"]
    assert parse(",a\n7,5\n2,6\n").columns == ["x0", "a"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b"a,b\n1,2\n3\n", "line 3 has 1 cells, the lines before it have 2"),
        (b"a,b\n1,2,9\n3,4\n", "line 2 has 3 cells"),
        (b'a,b\n"x\ny",2\n"z",3,4\n', "line 4 has 3 cells"),
        (b'a,b\n1,2\n3,"4\n', "line 3: unexpected end of data"),
        (b"a,b\n1,caf\x81\n", "line 2: byte 0x81 at offset 9 is no UTF-8"),
        (b"", "is empty"),
        (b"\n\n", "is empty"),
    ],
)
def test_malformed_text_names_the_line(text, where):
    with pytest.raises(DataError, match=rf"table\.csv.*{where}"):
        parse(text)


def test_ragged_rows_are_found_wherever_they_are():
    check_every_row_counted(parse, b"a,b,c\n" + b"1,2,3\n" * 5)
    check_every_row_counted(parse, b"a,b,c\n" + b'1,"2",3\n' * 5)


@pytest.mark.parametrize("separator", ["", ",,", "é", '"', "\n"])
def test_bad_separator(separator):
    with pytest.raises(DataError, match="one ASCII character"):
        parse(MIXED, separator=separator)


cells = st.one_of(st.none(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=8))
def test_numbers_round_trip_through_pandas(rows):
    # An independent writer; its text is the shortest that gives the same float back.
    text = pd.DataFrame(rows, columns=["a", "b"], dtype=object).to_csv(index=False)
    table = parse(text)
    for place, name in enumerate("ab"):
        for got, row in zip(table[name].to_list(), rows, strict=True):
            assert got is None if row[place] is None else got == float(row[place])


@given(st.text(max_size=60))
def test_any_text_gives_a_table_or_a_data_error(text):
    try:
        table = parse(text)
    except DataError:
        return
    assert table.width >= 1


@given(st.lists(st.lists(st.text(max_size=5), min_size=2, max_size=2), min_size=1, max_size=5))
def test_text_round_trips_through_pandas(rows):
    rows = [[f"v{cell}v" for cell in row] for row in rows]  # no holes, no numbers, no outer spaces
    if any("\r" in cell for row in rows for cell in row):
        return  # a bare return ends a line for some writers and readers, and not for others
    text = pd.DataFrame(rows, columns=["a", "b"]).to_csv(index=False)
    assert parse(text, header=True, separator=",").rows() == [tuple(row) for row in rows]


def test_parquet_round_trip(tmp_path):
    table = pl.DataFrame({"a": [1, None, 3], "b": ["x", None, "y"], "c": [0.5, math.inf, None]})
    table.write_parquet(tmp_path / "table.parquet")
    assert read_parquet(tmp_path / "table.parquet").frame.equals(table)


def test_parquet_of_pandas(tmp_path):
    pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]}).to_parquet(tmp_path / "table.parquet", index=False)
    assert read_parquet(tmp_path / "table.parquet").frame.rows() == [(1.0, "x"), (None, None)]


def test_damaged_parquet(tmp_path):
    buffer = io.BytesIO()
    pl.DataFrame({"a": list(range(100))}).write_parquet(buffer)
    whole = buffer.getvalue()
    for content in (b"", b"PAR1", whole[:-9], whole[: len(whole) // 2], whole[4:], b"a,b\n1,2\n"):
        with pytest.raises(DataError, match=r"cut\.parquet is no Parquet file, or damaged"):
            read_parquet(write(tmp_path / "cut.parquet", content))
