"""Two processes give the bits of one process with two devices; one that is killed ends the other, and both go on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from socket import socket
from typing import Any

import numpy as np
import pytest

import likely
from likely import distributed
from tests.conftest import ROOT, environment_of

NAMES = "rbm,vae,mixture,coded,factors,circuit,network"
UNEQUAL = ("n_processes", "share")
TIMEOUT = 300.0  # of a whole run, on a busy machine


def launch(folder: Path, task: str, names: str, n_devices: int, *where: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.distributed.run_alone", str(folder), task, names, *map(str, where)]
    options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env=environment_of(n_devices), **options)


def pair(folder: Path, task: str, names: str) -> list[subprocess.Popen[str]]:
    """Two processes of one device each."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [launch(folder, task, names, 1, port, 2, rank) for rank in (0, 1)]


def finished(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, said[-3000:]


def results(folder: Path, task: str, n_processes: int, rank: int) -> dict[str, np.ndarray]:
    with np.load(folder / f"{task}.{n_processes}.{rank}.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With what one process of two devices gave, and two of one device."""
    folder = tmp_path_factory.mktemp("processes")
    finished(launch(folder, "fit", NAMES, 2))
    for process in pair(folder, "fit", NAMES):
        finished(process)
    return folder


@pytest.mark.parametrize("name", NAMES.split(","))
def test_two_processes_have_the_bits_of_one_with_two_devices(folder, name):
    alone = {key: value for key, value in results(folder, "fit", 1, 0).items() if key.startswith(f"{name}/")}
    assert f"{name}/evidence" in alone
    for rank in (0, 1):
        found = results(folder, "fit", 2, rank)
        assert int(found["n_devices"]) == int(found["n_processes"]) == 2
        for key, expected in alone.items():
            np.testing.assert_array_equal(found[key], expected, err_msg=f"{key} of process {rank}")


def test_a_process_holds_its_own_rows_alone(folder):
    assert float(results(folder, "fit", 1, 0)["share"]) == 1.0
    assert [float(results(folder, "fit", 2, rank)["share"]) for rank in (0, 1)] == [0.5, 0.5]


def test_the_first_process_writes_the_file(folder):
    one, two = (likely.load(folder / f"model.fit.{n}.likely") for n in (1, 2))
    np.testing.assert_array_equal(one.params_.loadings, two.params_.loadings)


def test_the_memory_of_a_process_grows_with_its_own_rows(tmp_path):
    """Of a memory map: one process takes all rows, and each of two half of them."""
    rows = np.lib.format.open_memmap(tmp_path / "rows.npy", mode="w+", dtype=np.float32, shape=(96_000, 400))
    rows[:] = np.random.default_rng(0).integers(0, 2, rows.shape, np.uint8)
    rows.flush()
    table = rows.nbytes
    del rows
    finished(launch(tmp_path, "memory", "", 1))
    for process in pair(tmp_path, "memory", ""):
        finished(process)
    alone = results(tmp_path, "memory", 1, 0)
    for rank in (0, 1):
        found = results(tmp_path, "memory", 2, rank)
        for name in ("memory/mixture", "memory/rbm"):
            assert int(alone[name]) > 0.9 * table, (name, alone[name])
            assert int(found[name]) < 0.7 * int(alone[name]), (name, rank, found[name], alone[name])


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_ends_the_other_in_words(tmp_path, victim):
    """Whichever it is: the first one, at which JAX's coordinator is, or another."""
    processes = pair(tmp_path, f"die{victim}", "rbm")
    processes[victim].communicate(timeout=TIMEOUT)
    began = time.monotonic()
    other = processes[1 - victim]
    _, said = other.communicate(timeout=TIMEOUT)
    assert time.monotonic() - began < 20
    assert processes[victim].returncode == -9
    assert other.returncode == 1
    assert f"process {1 - victim} of 2 cannot go on (process {victim} of 2 has ended)" in said, said[-3000:]
    assert "stack trace" not in said, said[-3000:]


def test_a_run_goes_on_from_the_checkpoint_of_one_that_was_killed(folder):
    """The steps after the last checkpoint are taken anew, and give the bits of the run that was not broken off."""
    for process in pair(folder, "die0", "rbm"):
        process.communicate(timeout=TIMEOUT)
    for process in pair(folder, "resume", "rbm"):
        finished(process)
    expected = results(folder, "fit", 1, 0)
    for rank in (0, 1):
        found = results(folder, "resume", 2, rank)
        for key in (key for key in expected if key.startswith("rbm/")):
            np.testing.assert_array_equal(found[key], expected[key], err_msg=f"{key} of process {rank}")
        assert [text.split(" than")[0].split("another ")[1] for text in found["refusals"].tolist()] == [
            "data", "settings", "random_state", "data", "settings", "random_state",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("host:1", 2, None), "give all of"),
        ((None, 2, 0), "give all of"),
        (("host", 2, 0), "host:port"),
        (("host:x", 2, 0), "host:port"),
        (("host:1", 0, 0), "at least 1"),
        (("host:1", 2, 2), "from 0 to 1"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        distributed.start(*arguments)


def test_one_process_is_a_run_of_one():
    assert (distributed.n_processes(), distributed.rank(), distributed.is_first()) == (1, 0, True)
    assert distributed.shares(7) == [(0, 7)]
    np.testing.assert_array_equal(distributed.joined([np.arange(3), np.arange(2)]), [0, 1, 2, 0, 1])
    assert distributed.summed([{"a": np.ones(2)}])["a"].tolist() == [1, 1]
