"""A sample of the campaign of hostile files, in a process of its own whose memory is limited."""

import json
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.campaign.formats import FORMATS, Format, in_memory
from tests.campaign.fuzzing import campaign, one
from tests.campaign.mutations import mutated_json
from tests.campaign.watched import Lost, watched
from tests.conftest import DEFAULT_SEED

N_INPUTS = 10_000


def test_hostile_files_are_read_or_refused():
    found = campaign(N_INPUTS, DEFAULT_SEED)
    assert sum(of["inputs"] for of in found.values()) >= N_INPUTS
    assert {name: of["faults"] for name, of in found.items() if of["faults"]} == {}
    assert all(of["refused"] > 0.3 * of["inputs"] for of in found.values()), "damage that does no damage tries nothing"


def test_json_of_which_nothing_is_left_is_none():
    found = [mutated_json(np.random.default_rng(seed), {"a": 1}) for seed in range(200)]
    assert None in found
    assert {} in found


@pytest.mark.parametrize("name", FORMATS)
def test_sound_files_are_read(name, tmp_path):
    form = FORMATS[name]
    for example in form.examples():
        path = tmp_path / f"file{form.ending}"
        path.write_bytes(example)
        assert one(form, path) == "read"


# What the campaign found, and its like: the format, words of a sound file, and what stood in their place. Empty texts
# in an array of negative length ended the process.
FOUND = [
    ("schema", b'"kind": "real"', b'"kind": "real", "support": "words"'),
    ("schema", b'"kind": "real"', b'"kind": "real", "support": ["low", 3]'),
    ("schema", b'"image_shape": null', b'"image_shape": "wide"'),
    ("npy", b"'<U1', 'fortran_order': False, 'shape': (1, 2), }", b"'<U0', 'fortran_order': False, 'shape': (-1,), }"),
    ("npy", b"'shape': (4, 3)", b"'shape': (-4, 3)"),
    ("npy", b"'shape': (4, 3), }", b"'shape': (0,), }  "),
    ("npy", b"'shape': (4, 3), }", b"'shape': (3, 0), }"),
    ("npy", b"'<U1', 'fortran_order': False, 'shape': (1, 2), }", b"'<U0', 'fortran_order': False, 'shape': (99999,)}"),
    ("xmlbif", b'encoding="UTF-8"', b'encoding="UTF-7"'),
]


@pytest.mark.parametrize(("name", "sound", "damaged"), FOUND)
def test_files_that_were_no_error_of_ours(name, sound, damaged, tmp_path):
    form = FORMATS[name]
    path = tmp_path / f"file{form.ending}"
    examples = [example for example in form.examples() if sound in example]
    assert examples
    for example in examples:
        path.write_bytes(example.replace(sound, damaged))
        assert one(form, path) == "refused"


def parts(train, test):
    return in_memory(lambda file: np.savez(file, train=train, test=test))


def dates(*days):
    return in_memory(pl.DataFrame({"day": pl.Series(days, dtype=pl.Int32).cast(pl.Date)}).write_parquet)


# The same of whole files, whose sums and sizes are right.
WHOLE = {
    "a side of none beside sides without bounds": ("idx", bytes([0, 0, 8, 3, *b"\xff" * 8, 0, 0, 0, 0])),
    "more sides than arrays have": ("idx", bytes([0, 0, 8, 70, *[0, 0, 0, 1] * 70, 5])),
    "days beside numbers": ("npz", parts(np.zeros((2, 2), "M8[D]"), np.eye(2))),
    "single numbers": ("npz", parts(np.float64(1), np.float64(2))),
    "words beside numbers": ("npz", parts(np.array([["a"], ["b"]]), np.eye(2)[:, :1])),
    "a day that no calendar has": ("parquet", dates(0, 2**31 - 1)),
    "a cycle of three": ("uai", b"BAYES 3 2 2 2 3 2 0 1 2 1 2 2 2 0 4 .5 .5 .5 .5 4 .5 .5 .5 .5 4 .5 .5 .5 .5"),
    "a cycle of two": ("uai", b"BAYES 2 2 2 2 2 0 1 2 1 0 4 .5 .5 .5 .5 4 .5 .5 .5 .5"),
}


@pytest.mark.parametrize("what", WHOLE)
def test_whole_files_that_were_no_error_of_ours(what, tmp_path):
    name, data = WHOLE[what]
    path = tmp_path / f"file{FORMATS[name].ending}"
    path.write_bytes(data)
    assert one(FORMATS[name], path) == "refused"


def too_long(path):
    until = time.process_time() + 2
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
    assert said in one(Format("", list, bug), path, 0.2)


def test_processes_that_crash_or_hang_are_found_and_begun_anew():
    jobs = ["sound", "crash", "machine code", "sound", "exit", "sound"]
    answers = list(watched("tests.campaign.planted", jobs, 2, seconds=600.0))
    assert [job for job, _ in answers] == jobs
    assert [answers[i][1] for i in (0, 3, 5)] == ["sound"] * 3
    assert all(isinstance(answers[i][1], Lost) for i in (1, 2, 4))
    assert "SIGSEGV" in str(answers[1][1])
    assert "SIGXCPU" in str(answers[2][1])
    assert "exit code 3" in str(answers[4][1])
    assert "its last word" in str(answers[4][1])


def test_processes_that_are_silent_are_ended():
    (_, lost), (_, answer) = watched("tests.campaign.planted", ["wait", "sound"], 1, seconds=3.0)
    assert isinstance(lost, Lost)
    assert "silent for 3.0 s" in str(lost)
    assert answer == "sound"
