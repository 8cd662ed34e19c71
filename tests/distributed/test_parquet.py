"""Rows of Parquet files as one memory map; that processes share the reading out is shown where there are several."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from likely.distributed import parquet, rows_of_parquet


@pytest.fixture
def folder(tmp_path) -> Path:
    rng = np.random.default_rng(0)
    for number, n in enumerate((50, 7, 90)):
        frame = pl.DataFrame({"a": rng.normal(size=n), "b": rng.integers(0, 9, n), "c": rng.random(n) < 0.5})
        frame = frame.with_columns(pl.when(pl.col("b") > 1).then(pl.col("b")).alias("b"))
        frame.write_parquet(tmp_path / f"{number}.parquet", row_group_size=20)
    return tmp_path


def expected(folder: Path) -> np.ndarray:
    whole = pl.concat([pl.read_parquet(path) for path in sorted(folder.glob("*.parquet"))])
    return whole.select(pl.all().cast(pl.Float32)).to_numpy()


def test_rows_of_all_files_come_one_after_the_other(folder, monkeypatch):
    monkeypatch.setattr(parquet, "_CELLS_AT_ONCE", 40)
    rows = rows_of_parquet(folder, folder / "rows.npy")
    assert isinstance(rows, np.memmap)
    np.testing.assert_array_equal(rows, expected(folder))
    assert np.isnan(rows[:, 1]).any()
    files = [folder / "2.parquet", folder / "0.parquet"]
    other = rows_of_parquet(files, folder / "rows.npy", columns=["c", "a"], dtype="float64")
    assert other.dtype == np.float64
    np.testing.assert_array_equal(other[:90, 0], rows[57:, 2])
    assert sorted(path.name for path in folder.glob("rows*")) == ["rows.npy"]


def test_shares_of_any_number_of_processes_are_all_rows(folder, monkeypatch):
    monkeypatch.setattr(parquet, "_CELLS_AT_ONCE", 40)
    files, lengths = sorted(folder.glob("*.parquet")), [50, 7, 90]

    def read(edges: list[int]) -> np.ndarray:
        out = np.full((147, 3), np.inf)
        for first, end in itertools.pairwise(edges):
            for start, part in parquet._decoded(files, lengths, ["a", "b", "c"], first, end):
                assert first <= start <= start + len(part) <= end
                out[start : start + len(part)] = part
        return out.astype(np.float32)

    for edges in ([0, 147], [0, 73, 147], [0, 49, 98, 147], [0, 50, 57, 147]):
        np.testing.assert_array_equal(read(edges), expected(folder))
    assert np.isinf(read([0, 73, 146])).any()  # what nobody reads is missed


def test_files_that_do_not_fit_are_refused_before_anything_is_written(folder):
    def refused(words: str, files=folder, **options) -> None:
        with pytest.raises(ValueError, match=words):
            rows_of_parquet(files, folder / "rows.npy", **options)
        assert not list(folder.glob("rows*"))

    refused("there are no Parquet files", [])
    refused("there is no file .*none.parquet", [folder / "none.parquet"])
    refused("has no column 'z'", columns=["a", "z"])
    with pytest.raises(ValueError, match="there is no folder"):
        rows_of_parquet(folder, folder / "nowhere" / "rows.npy")
    pl.DataFrame({"a": ["x"], "b": [1], "c": [True]}).write_parquet(folder / "3.parquet")
    refused("column 'a' of .*3.parquet is String, and a memory map holds numbers")
    (folder / "3.parquet").write_bytes(b"PAR1, which it is not")
    refused("3.parquet is no Parquet file, or damaged")
    pl.DataFrame({"a": []}).write_parquet(folder / "4.parquet")
    refused("have no cells", [folder / "4.parquet"], columns=[])
