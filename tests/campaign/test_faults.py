"""A sample of the campaign of faults, and faulty parts that it catches."""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from likely.storage import files
from likely.storage.files import FileError, remove_remains, write_atomically
from tests.campaign import disks, long_work, page
from tests.conftest import DEFAULT_SEED, ROOT, environment_of


def test_killed_writers_leave_the_old_file_or_the_new_one():
    command = [sys.executable, "-m", "tests.campaign", "saves", "--small", "--seed", str(DEFAULT_SEED)]
    run = subprocess.run(command, cwd=ROOT, env=environment_of(1), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    found = json.loads(run.stdout)
    assert found["temporary files"] > 0, "kills that never come in the middle of a save try nothing"


@pytest.mark.parametrize("fault", disks.FAULTS)
def test_writers_say_what_is_wrong_and_leave_what_was_there(fault, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in disks.WRITERS:
        assert disks.write_under(disks.FAULTS[fault], name, folder) == []


def test_training_goes_on_from_its_last_checkpoint():
    names = ("no room when the disk is asked", "a folder that vanishes")
    found = long_work.training({name: disks.FAULTS[name] for name in names})
    assert (found["tried"], found["faults"]) == (2, [])


def test_files_that_are_replaced_while_they_are_read():
    found = disks.reading(20)
    assert found["faults"] == []


def in_place(target, write):
    """A writer that opens the target itself."""
    with open(target, "wb") as file:
        write(file)


def hushed(target, write, write_beside=files._write_beside):
    """A writer that keeps errors to itself."""
    with contextlib.suppress(OSError):
        write_beside(target, write)


@pytest.mark.parametrize(
    ("bug", "said"), [(in_place, "the old file is another"), (hushed, "it wrote as if nothing were wrong")]
)
def test_faulty_writers_are_caught(bug, said, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_write_beside", bug)
    assert said in disks.write_under(disks.no_room, "table.toml", tmp_path)


def test_a_reader_that_opens_twice_is_caught(monkeypatch):
    def twice(path):
        description = files.read_description(path)
        time.sleep(0.002)
        arrays, _ = files.read_arrays(path)
        return {*arrays["a"][:1].tolist(), description["meta"]["value"]}

    monkeypatch.setattr(disks, "READERS", {"m.likely": twice})
    assert any("mixture" in fault for fault in disks.reading(30)["faults"])


def remains(folder: Path, writer: int) -> Path:
    path = folder / f".target.{writer}-abc.part"
    path.write_bytes(b"half")
    return path


def test_remains_of_a_process_whose_number_is_anothers_now(tmp_path):
    target = tmp_path / "target"
    own, old, new, held = (remains(tmp_path, n) for n in (os.getpid(), 1, os.getppid(), 0))
    held = held.rename(tmp_path / f".target.{os.getppid()}-held.part")
    for part in (old, held):
        os.utime(part, (1, 1))
    with held.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        remove_remains(target)
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([new.name, held.name])
    assert not own.exists()
    remove_remains(target)
    assert [path.name for path in tmp_path.iterdir()] == [new.name]


def test_a_folder_in_the_files_place(tmp_path):
    with pytest.raises(FileError, match="it is a folder"):
        write_atomically(tmp_path, b"")


def test_the_page_is_what_the_record_says():
    record = json.loads(page.RECORD.read_text())
    assert page.DOCUMENT.read_text() == page.page(record)
    assert all(found["faults"] == [] for found in record.values())
