"""Tables that are large for the memory: columns on the disk give what columns in memory give, bit for bit."""

import tempfile

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import likely
from likely import memory
from likely.datasets.errors import DataError
from likely.datasets.formats import csv_and_parquet
from likely.datasets.formats.csv_and_parquet import read_csv, read_parquet
from likely.datasets.formats.delimited import pieces

N_ROWS = 6000


def table(seed: int = 0) -> pl.DataFrame:
    """Every sort of column that a file may have: numbers, words, dates, codes, holes, odd cells late in the file."""
    rng = np.random.default_rng(seed)
    late = np.arange(N_ROWS) > N_ROWS - 50
    frame = pl.DataFrame(
        {
            "real": np.round(rng.normal(size=N_ROWS), 4),
            "whole": rng.poisson(3, N_ROWS),
            "late_real": np.where(late, "2.5", rng.integers(0, 9, N_ROWS).astype(str)),
            "late_word": np.where(late, "unknown", rng.integers(0, 9, N_ROWS).astype(str)),
            "word": rng.choice(["red", "green", "a word that is longer than twelve"], N_ROWS),
            "date": np.datetime64("2020-01-01") + rng.integers(0, 300, N_ROWS),
            "code": np.char.zfill(rng.integers(0, 99999, N_ROWS).astype(str), 5),
            "money": np.char.add("$", rng.integers(1, 900, N_ROWS).astype(str)),
            "truth": rng.choice(["yes", "no"], N_ROWS),
            "sentinel": np.where(rng.random(N_ROWS) < 0.1, -999, rng.integers(0, 50, N_ROWS)),
        }
    )
    holes = rng.random((N_ROWS, frame.width)) < 0.05
    return frame.with_columns(
        pl.when(pl.Series(~holes[:, place])).then(pl.col(name)).alias(name) for place, name in enumerate(frame.columns)
    )


@pytest.fixture
def small_memory(monkeypatch):
    """Memory for a few columns, and pieces that are put away every few blocks."""
    monkeypatch.setattr(pieces, "_HELD_BYTES", 1 << 16)
    monkeypatch.setattr(csv_and_parquet, "_BYTES_A_BLOCK", 1 << 14)
    return lambda: monkeypatch.setenv(memory.VARIABLE, "1MB")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_file_read_through_the_disk_is_the_one_read_in_memory(suffix, small_memory, tmp_path):
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        table().write_parquet(path)
    else:
        from tests.datasets.files import write

        write(path, table().write_csv())
    whole = likely.datasets.load(path)
    read = likely.datasets.read_table(path)
    small_memory()
    apart = likely.datasets.load(path)
    again = likely.datasets.read_table(path)
    assert "temporary files" in apart.notes[-1] or any("temporary files" in note for note in apart.notes)
    assert apart.schema == whole.schema
    for part in ("train", "valid", "test"):
        assert_frame_equal(getattr(apart, part), getattr(whole, part), check_exact=True)
        assert np.array_equal(apart.row_numbers[part], whole.row_numbers[part])
    assert_frame_equal(again.frame, read.frame, check_exact=True)
    assert [n for n in again.notes if "temporary" not in n] == list(read.notes)


def test_a_block_that_is_put_away_twice_or_not_at_all_is_caught(small_memory, tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    table().write_csv(path)
    whole = read_csv(path).frame
    small_memory()
    assert_frame_equal(read_csv(path).frame, whole)

    def doubled(column):
        kept = memory.on_disk(column)
        return pl.concat([kept, kept]) if len(kept) < N_ROWS else kept

    def dropped(column):
        kept = memory.on_disk(column)
        return kept[: len(kept) // 2] if len(kept) < N_ROWS else kept

    for fault in (doubled, dropped):
        monkeypatch.setattr("likely.datasets.formats.csv_and_parquet.on_disk", fault)
        with pytest.raises((AssertionError, DataError, pl.exceptions.PolarsError)):
            assert_frame_equal(read_csv(path).frame, whole)


def test_nothing_is_left_on_the_disk_when_reading_fails(small_memory, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    path = tmp_path / "table.csv"
    path.write_text(table().write_csv() + "one,cell,too,many,in,this,row,and,one,more,here\n")
    small_memory()
    with pytest.raises(DataError, match="cells, the lines before it have"):
        read_csv(path)
    assert not list(folder.iterdir())


def test_a_table_with_no_room_on_the_disk_is_refused_before_it_is_read(small_memory, tmp_path, monkeypatch):
    path, other = tmp_path / "table.csv", tmp_path / "table.parquet"
    table().write_csv(path)
    table().write_parquet(other)
    small_memory()
    monkeypatch.setattr(memory.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1000})())
    for read, file in ((read_csv, path), (read_parquet, other)):
        with pytest.raises(memory.NoRoomError, match="set TMPDIR to a folder with room"):
            read(file)


def test_without_arrow_a_table_stays_in_memory_as_long_as_it_fits(small_memory, tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    table().write_csv(path)
    monkeypatch.setattr(csv_and_parquet, "can_map", lambda: False)
    small_memory()
    assert read_csv(path).keep is None
    monkeypatch.setenv(memory.VARIABLE, "100kB")
    with pytest.raises(DataError, match=r"install pyarrow \(pip install 'likely\[large\]'\)"):
        read_csv(path)
