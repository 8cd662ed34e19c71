"""Rows of CSV text cut anywhere, against Python's csv module."""

import csv
import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.datasets import DataError
from likely.datasets.formats.delimited.options import TableOptions
from likely.datasets.formats.delimited.rows import Rows, find_separator
from likely.datasets.formats.delimited.table import Lines, parse_table

PATH = Path("table.csv")


def read(text: bytes, size: int, **options) -> tuple[list[tuple], list[int]]:
    chunks = iter([text[i : i + size] for i in range(0, len(text), size)])
    blocks = list(Rows(chunks, PATH, ",", **options))
    cells = [row for block in blocks for row in block.cells.rows()]
    return [tuple(cell or "" for cell in row) for row in cells], np.concatenate([b.lines for b in blocks]).tolist()


words = st.text(alphabet='ab,"\n é', max_size=4)


@settings(max_examples=60)
@given(st.lists(st.tuples(words, words, words), min_size=1, max_size=6), st.integers(1, 40))
def test_blocks_of_any_size_hold_the_rows_that_the_csv_module_reads(rows, size):
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    reader, expected, lines, line = csv.reader(io.StringIO(buffer.getvalue())), [], [], 1
    for row in reader:
        expected.append(tuple(row))
        lines.append(line)
        line = reader.line_num + 1
    assert read(buffer.getvalue().encode(), size) == (expected, lines)
    places = [2, 0]
    chosen, _ = read(buffer.getvalue().encode(), size, columns=sorted(places))
    assert chosen == [(row[0], row[2]) for row in expected]


@pytest.mark.parametrize("size", [3, 10, 1000])
def test_quotes_that_are_not_those_of_csv(size):
    text = b'a,b\n5" pipe,3\n\n6" rod, "x, y"\n7,8\n'
    rows, lines = read(text, size)
    assert rows == [("a", "b"), ('5" pipe', "3"), ('6" rod', "x, y"), ("7", "8")]
    assert lines == [1, 2, 4, 5]


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2", ","),
        ("1,5;2,5;3,5\n1,5;2,5;3,5", ";"),
        ("a\tb,c\n1\t2,5", "\t"),
        ('"a;b",c\n"d;e",f', ","),
        ("a|b\n1|2", "|"),
        ("alone\n1", ","),
        ("A11 6 A34\nA12 48 A32", " "),
        ("  0.5  18.0\n 1.5   0.0\n10 2", " "),
        ('18.0 8 307 3504 12 70 1\t"a car"\n15.0 8 350 3693 11 70 1\t"other car"', " "),
        ("John Smith\nMary Jones", ","),
        ("1 2\n3 4 5", ","),
        ("at\tvalue\n1 Jan 2020\t5\n2 Jan 2020\t6", "\t"),
    ],
)
def test_separators(text, separator):
    assert find_separator(text.encode()) == separator


def test_a_given_decimal_comma_is_no_separator():
    assert find_separator(b"1,5|2,5\n1,5|2,5", ",") == "|"


@pytest.mark.parametrize("size", [4, 1000])
def test_several_spaces_separate_once(size):
    text = b' 1   2.5 \t"a  b"\r\n\n  10 3 c \n'
    rows = Rows(iter([text[i : i + size] for i in range(0, len(text), size)]), PATH, " ")
    blocks = list(rows)
    assert [row for block in blocks for row in block.cells.rows()] == [("1", "2.5", "a  b"), ("10", "3", "c")]
    assert np.concatenate([block.lines for block in blocks]).tolist() == [1, 3]
    by_csv = Rows(iter([b'5" a\n 6"  b\n']), PATH, " ")
    assert [row for block in by_csv for row in block.cells.rows()] == [('5"', "a"), ('6"', "b")]


def table_of(text: bytes, size: int = 1 << 20, **options):
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    return parse_table(lambda: iter(chunks), PATH, TableOptions(**options))


@pytest.mark.parametrize("size", [7, 64, 10_000])
def test_types_do_not_depend_on_the_blocks(size):
    # Text after plain numbers: the column is read again, as a whole.
    text = "a,b,c,d\n" + "".join(f"{i},{i}.5,x,{i}\n" for i in range(30)) + "no,-,y,1.5\n"
    table = table_of(text.encode(), size)
    assert table.frame.schema == {"a": pl.String, "b": pl.Float64, "c": pl.String, "d": pl.Float64}
    assert table.frame["a"].to_list() == [str(i) for i in range(30)] + ["no"]
    assert table.frame["b"].to_list() == [i + 0.5 for i in range(30)] + [None]
    assert "'no' on line 32 is no number" in " ".join(table.notes)
    assert "'-' (on line 32) is read as unobserved" in " ".join(table.notes)


def test_rows_know_their_lines():
    table = table_of(b'\n\na,b\n1,x\n\n2,"y\nz"\n3,w\n')
    assert [table.lines[row] for row in range(3)] == [4, 6, 8]
    assert table.place(1) == "line 6"
    lines = Lines()
    lines.add(np.array([2, 3, 4]))
    lines.add(np.array([5, 9]))
    assert [lines[row] for row in range(5)] == [2, 3, 4, 5, 9]


@pytest.mark.parametrize("size", [5, 1000])
def test_encodings_are_found(size):
    text = "name,x\ncafé,1\nnaïve,2\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-32"):
        table = table_of(text.encode(encoding), max(size, 8))
        assert table.frame["name"].to_list() == ["café", "naïve"]
        assert table.notes == {
            "utf-16": ("the text is in UTF-16, by its byte-order mark.",),
            "utf-32": ("the text is in UTF-32, by its byte-order mark.",),
            "cp1252": (
                "the text is no UTF-8 (byte 0xe9 on line 2), and was read as Windows-1252; --encoding gives another.",
            ),
        }.get(encoding, ())
    assert table_of(text.encode("cp437"), encoding="cp437").frame["name"][0] == "café"


def test_encodings_that_do_not_fit():
    with pytest.raises(DataError, match=r"line 2: byte 0xe9 at offset 10 is no UTF-8: give another --encoding"):
        table_of("name,x\ncafé,1\n".encode("latin-1"), encoding="utf-8")
    with pytest.raises(DataError, match=r"line 3: byte 0xff .* is no UTF-8: save it as UTF-8, or give its --encoding"):
        table_of("name,x\ncafé au lait né,1\n".encode() + b"\xff,2\n")  # damaged, rather than of another encoding
    with pytest.raises(DataError, match="give --encoding utf-16-le"):
        table_of("name,x\na,1\n".encode("utf-16-le"))
    with pytest.raises(DataError, match="this is no ascii"):
        table_of("name,x\ncafé,1\n".encode(), encoding="ascii")
    assert table_of("name,x\na,1\n".encode("utf-16-le"), encoding="utf-16-le").frame.rows() == [("a", 1)]
