"""Two processes give the bits of one process with two devices; one that is killed ends the other, and both go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from socket import socket

import numpy as np
import polars as pl
import pytest

import likely
from likely import distributed
from likely.distributed import run
from tests.conftest import environment_of
from tests.distributed.forks import Fork, Forks
from tests.distributed.run_alone import PLANTED

NAMES = "rbm,vae,mixture,coded,factors,circuit,network,trees"
TIMEOUT = 300.0  # of a whole run, on a busy machine


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    # What is large comes from the system and goes back to it at once, so that it can be seen how much a fit takes.
    with Forks({**environment_of(), "MALLOC_MMAP_THRESHOLD_": str(1 << 24)}) as server:
        yield server


def pair(forks: Forks, folder: Path, task: str, names: str) -> list[Fork]:
    """Two processes of one device each."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [forks.start(1, folder, task, names, port, 2, rank) for rank in (0, 1)]


def finished(process: Fork) -> None:
    code, said = process.wait(TIMEOUT)
    assert code == 0, said[-3000:]


def results(folder: Path, task: str, n_processes: int, rank: int) -> dict[str, np.ndarray]:
    with np.load(folder / f"{task}.{n_processes}.{rank}.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def folder(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With what one process of two devices gave, and two of one device."""
    folder = tmp_path_factory.mktemp("processes")
    finished(forks.start(2, folder, "fit", NAMES))
    for process in pair(forks, folder, "fit", NAMES):
        finished(process)
    return folder


def check_bits(folder: Path, name: str, task: str = "fit") -> None:
    """What each of two processes learned is what one process with two devices did."""
    alone = {key: value for key, value in results(folder, "fit", 1, 0).items() if key.startswith(f"{name}/")}
    assert f"{name}/evidence" in alone
    for rank in (0, 1):
        found = results(folder, task, 2, rank)
        assert int(found["n_devices"]) == int(found["n_processes"]) == 2
        for key, expected in alone.items():
            np.testing.assert_array_equal(found[key], expected, err_msg=f"{key} of process {rank}")


@pytest.mark.parametrize("name", NAMES.split(","))
def test_two_processes_have_the_bits_of_one_with_two_devices(folder, name):
    check_bits(folder, name)


@pytest.mark.parametrize("name", PLANTED.split(","))
def test_processes_that_read_wrong_rows_or_add_up_wrongly_have_other_bits(folder, name):
    """Planted here, where the processes are, and not in tests/controls, where all of them would run once more."""
    with pytest.raises(AssertionError, match=f"{name}/"):
        check_bits(folder, name, "planted")


def test_a_process_holds_its_own_rows_alone(folder):
    assert float(results(folder, "fit", 1, 0)["share"]) == 1.0
    assert [float(results(folder, "fit", 2, rank)["share"]) for rank in (0, 1)] == [0.5, 0.5]


def test_the_first_process_writes_the_file(folder):
    one, two = (likely.load(folder / f"model.fit.{n}.likely") for n in (1, 2))
    np.testing.assert_array_equal(one.params_.loadings, two.params_.loadings)


def test_a_process_reads_its_own_part_of_files_and_its_memory_grows_with_its_own_rows(forks, tmp_path):
    """Of two Parquet files: one process decodes and holds all rows, and each of two half of them."""
    n, d = 48_000, 320
    rows = np.random.default_rng(0).integers(0, 2, (n, d), np.uint8)
    pl.DataFrame(rows[:20_000]).write_parquet(tmp_path / "0.parquet", row_group_size=4000)
    pl.DataFrame(rows[20_000:]).write_parquet(tmp_path / "1.parquet", row_group_size=4000)
    for process in (forks.start(1, tmp_path, "memory", ""), *pair(forks, tmp_path, "memory", "")):
        finished(process)
    alone = results(tmp_path, "memory", 1, 0)
    assert int(alone["decoded"]) == n
    for rank in (0, 1):
        found = results(tmp_path, "memory", 2, rank)
        assert int(found["decoded"]) == n / 2
        np.testing.assert_array_equal(found["rows"], rows[::4000])
        for name in ("memory/mixture", "memory/rbm"):
            assert int(alone[name]) > 0.9 * 4 * n * d, (name, alone[name])
            assert int(found[name]) < 0.7 * int(alone[name]), (name, rank, found[name], alone[name])


@pytest.mark.parametrize("victim", [1, 0])
def test_a_killed_process_ends_the_other_in_words(folder, forks, victim):
    """Whichever it is: the first one, at which JAX's coordinator is, or another."""
    processes = pair(forks, folder, f"die{victim}", "rbm")
    assert processes[victim].wait(TIMEOUT)[0] == -9
    began = time.monotonic()
    code, said = processes[1 - victim].wait(TIMEOUT)
    assert time.monotonic() - began < 20
    assert code == 1
    assert f"process {1 - victim} of 2 cannot go on (process {victim} of 2 has ended)" in said, said[-3000:]
    assert "stack trace" not in said, said[-3000:]


def test_a_run_goes_on_from_the_checkpoint_of_one_that_was_killed(folder, forks):
    """That of the test before. The steps after it are taken anew, and give the bits of a run that nobody broke off."""
    assert (folder / "checkpoint").exists()
    for process in pair(forks, folder, "resume", "rbm"):
        finished(process)
    check_bits(folder, "rbm", "resume")
    for rank in (0, 1):
        refusals = results(folder, "resume", 2, rank)["refusals"].tolist()
        assert [text.split(" than")[0].split("another ")[1] for text in refusals] == [
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


LAUNCHERS = {
    "Slurm": {
        "SLURM_JOB_ID": "5000",
        "SLURM_STEP_NODELIST": "node[007-010],other",
        "SLURM_NTASKS": "5",
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "0",
    },
    "Open MPI": {
        "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
        "OMPI_COMM_WORLD_SIZE": "5",
        "OMPI_COMM_WORLD_RANK": "3",
        "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    },
}


@pytest.mark.parametrize(("launcher", "host"), [("Slurm", "node007"), ("Open MPI", "10.96.0.1")])
def test_launchers_tell_processes_where_the_others_are(launcher, host, monkeypatch):
    with pytest.raises(ValueError, match="was not started by Slurm or Open MPI, so it must be told"):
        run._checked(None, None, None)
    for name, value in LAUNCHERS[launcher].items():
        monkeypatch.setenv(name, value)
    address, n_processes, number = run._checked(None, None, None)
    assert address.split(":")[0] == host
    assert (n_processes, number) == (5, 3)
