"""What Parquet files claim: sound ones pass, whoever wrote them, and numbers that no file can have are refused."""

import io

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from likely.datasets.errors import DataError
from likely.datasets.formats import csv_and_parquet
from likely.datasets.formats.csv_and_parquet import read_parquet
from likely.datasets.formats.parquet_claims import check_claims

N = 3000


def frame() -> pl.DataFrame:
    """Every kind of cell: numbers, words, holes, truths, lists, categories."""
    numbers = np.random.default_rng(0).normal(size=N)
    words = [None if i % 7 == 0 else f"w{i % 50}" for i in range(N)]
    columns = {"number": numbers, "word": words, "truth": [True] * N, "list": [[1, 2]] * N}
    return pl.DataFrame(columns).with_columns(pl.col("word").cast(pl.Categorical).alias("category"))


@pytest.mark.parametrize("compression", ["zstd", "snappy", "uncompressed"])
def test_what_polars_writes_is_sound(compression, tmp_path):
    path = tmp_path / "t.parquet"
    frame().write_parquet(path, compression=compression, row_group_size=1000)
    check_claims(path)
    assert read_parquet(path).frame.equals(frame())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "write_page_index": True}])
def test_what_arrow_writes_is_sound(version, options, tmp_path):
    for table in (frame(), frame().head(0)):
        path = tmp_path / "t.parquet"
        pq.write_table(table.to_arrow(), path, data_page_version=version, **options)
        check_claims(path)


def numbers_in(data: bytes, value: int) -> list[int]:
    """Places of an integer as Thrift's compact protocol writes it: twice its value, seven bits a byte."""
    value, found = 2 * value, b""
    while value >= 128:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    found += bytes([value])
    return [i for i in range(len(data)) if data.startswith(found, i)]


def test_a_page_with_other_numbers_is_refused(tmp_path):
    """The number of values stands in the page's head, in the column's entry, and of rows in the directory."""
    file = io.BytesIO()
    pl.DataFrame({"a": np.arange(N) * 0.37}).write_parquet(file, compression="uncompressed", statistics=False)
    data, path, places = file.getvalue(), tmp_path / "t.parquet", []
    for place in numbers_in(data, N):
        other = bytearray(data)
        other[place] ^= 2  # one more, or one less
        path.write_bytes(other)
        try:
            check_claims(path)
        except DataError:
            places.append(place)
    assert len(places) >= 3


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\xff" * 60 + b"PAR1", b"PAR1" + bytes(20) + b"PAR1"])
def test_what_is_no_parquet_file_is_refused(data, tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    with pytest.raises(DataError, match="no Parquet file, or damaged"):
        read_parquet(path)


def test_a_table_that_does_not_fit_into_the_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    frame().write_parquet(path)
    monkeypatch.setattr(csv_and_parquet, "memory_limit", lambda: 1000.0)
    with pytest.raises(DataError, match=r"3,000 rows, of which a single column takes 2.4e-05 GB"):
        read_parquet(path)
