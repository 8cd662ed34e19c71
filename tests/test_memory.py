"""What memory there is, and cells on the disk: the same as they were in memory, and refused where there is no room."""

import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from likely import memory

DAY = datetime.date(2020, 1, 31)


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series("x", [1.5, None, -0.0]),
        pl.Series("n", [1, None, 2**60]),
        pl.Series("w", ["a", None, "a word that is longer than twelve"]),
        pl.Series("b", [True, None, False]),
        pl.Series("d", [DAY, None]),
        pl.Series("t", [datetime.datetime(2020, 1, 31, 12), None]),
        pl.Series("none", [], dtype=pl.Float64),
    ],
)
def test_a_column_on_the_disk_is_the_one_in_memory(cells):
    found = memory.on_disk(cells)
    assert found.dtype == cells.dtype
    assert found.name == cells.name
    assert found.equals(cells, null_equal=True)
    assert found[1:].equals(cells[1:], null_equal=True)


def test_a_column_on_the_disk_takes_no_memory_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(memory.tempfile, "tempdir", str(tmp_path))
    cells = pl.Series("x", np.arange(4_000_000.0))
    found = memory.on_disk(cells)
    assert not list(tmp_path.iterdir())
    assert "likely-" in Path("/proc/self/maps").read_text()
    assert found.sum() == cells.sum()


def test_arrays_that_are_large_for_the_memory_go_to_the_disk(monkeypatch):
    monkeypatch.setenv(memory.VARIABLE, "8MB")
    assert isinstance(memory.allocate((1 << 20, 4), np.float64), np.memmap)
    assert not isinstance(memory.allocate((1 << 10, 4), np.float64), np.memmap)
    rows = np.arange(3_000_000.0).reshape(-1, 2)
    numbers = np.arange(0, len(rows), 2)
    found = memory.taken(rows, numbers)
    assert isinstance(found, np.memmap)
    assert np.array_equal(found, rows[numbers])


def test_what_the_disk_has_no_room_for_is_refused_before_work(monkeypatch):
    with pytest.raises(memory.NoRoomError, match=r"the rows need .* GB for temporary files, and .* set TMPDIR"):
        memory.check_room(1e18, "the rows")


@pytest.mark.parametrize("text", ["", "none", "-1", "0", "5 apples", "1e9GB"])
def test_an_amount_of_memory_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="memory must be a number of bytes"):
        memory.parse_bytes(text)


@pytest.mark.parametrize(
    ("member", "root", "limit", "held", "none"),
    [
        ("3:cpu:/\n0::/jobs/one\n", "", "memory.max", "anon", "max"),
        ("4:memory:/jobs/one\n0::/\n", "memory", "memory.limit_in_bytes", "total_rss", "9223372036854771712"),
        ("0::/../elsewhere\n", "", "memory.max", "anon", "max"),
    ],
)
@pytest.mark.parametrize("above", [False, True])
def test_limits_of_the_groups_of_the_process_count(member, root, limit, held, none, above, monkeypatch, tmp_path):
    """Its own, and of the group above it, as a container with a limit has it."""
    folder = tmp_path / root
    inner = folder / "jobs" / "one"
    inner.mkdir(parents=True)
    place = folder if above or "elsewhere" in member else inner
    (place / limit).write_text("5000000\n")
    (place / "memory.stat").write_text(f"{held} 2000000\nfile 9000000\n")
    (tmp_path / "membership").write_text(member)
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    monkeypatch.setattr(memory, "_MEMBERSHIP", tmp_path / "membership")
    assert memory.free_memory() == 3_000_000
    assert memory.stated_memory() == 5_000_000
    (place / limit).write_text(f"{none}\n")
    assert memory.free_memory() > 3_000_000


def test_a_system_without_groups_has_no_limits_of_theirs(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_MEMBERSHIP", tmp_path / "none")
    assert memory._groups() == []
