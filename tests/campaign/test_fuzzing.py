"""A sample of the campaign of hostile files, in a process of its own whose memory is limited."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.campaign.formats import FORMATS, Format
from tests.campaign.fuzzing import one
from tests.conftest import DEFAULT_SEED, ROOT, environment_of

N_INPUTS = 10_000


def test_hostile_files_are_read_or_refused():
    command = [sys.executable, "-m", "tests.campaign.fuzzing", str(N_INPUTS), str(DEFAULT_SEED)]
    run = subprocess.run(command, cwd=ROOT, env=environment_of(1), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout)
    assert {name: of["faults"] for name, of in found.items() if of["faults"]} == {}
    assert all(of["refused"] > 0.3 * of["inputs"] for of in found.values()), "damage that does no damage tries nothing"


@pytest.mark.parametrize("name", FORMATS)
def test_sound_files_are_read(name, tmp_path):
    form = FORMATS[name]
    for example in form.examples():
        path = tmp_path / f"file{form.ending}"
        path.write_bytes(example)
        assert one(form, path) == "read"


def too_long(path):
    until = time.process_time() + 5
    while time.process_time() < until:
        try:
            json.loads("[]")
        except Exception:  # as a reader that swallows whatever comes would
            continue


def other_error(path):
    raise KeyError("header")


def without_a_word(path):
    from likely.storage.files import FileError

    raise FileError


@pytest.mark.parametrize(
    ("bug", "said"),
    [(too_long, "took more than"), (other_error, "KeyError"), (without_a_word, "without a word"), (id, "read")],
)
def test_readers_at_fault_are_caught(bug, said, tmp_path):
    path = Path(tmp_path) / "file"
    path.write_bytes(b"")
    assert said in one(Format("", list, bug), path)
