"""Training and comparisons that are killed with SIGKILL at random moments, and what must be there afterwards.

Every file is the old one or the new one, whole; a run that goes on gives the bits of one that nobody killed; what was
finished is not done again; and after the next run nothing is left of the killed one.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.campaign import victims
from tests.campaign.saving import Record, check_alone, new_record


def context() -> Any:
    """Processes that are forked from a server, which has everything imported and no thread of JAX's started."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["tests.campaign.victims"])
    return server


def trainings(seed: int, small: bool) -> Record:
    """Kill training again and again, going on from its checkpoint, until enough kills were done."""
    n_kills = 2 if small else 200
    rng, found = np.random.default_rng(seed), new_record(n_kills)
    with tempfile.TemporaryDirectory() as folder:
        straight = Path(folder) / "straight"
        _await(_started(victims.training, str(straight)))
        expected, found["runs finished"] = victims.training_bits(straight), 0
        path = Path(folder) / "run.checkpoint"
        done = 0
        while done < n_kills:
            process = _started(victims.training, str(path))
            if _killed(process, rng.uniform(0, 5)):
                done += 1
                _check_checkpoint(path, found)
            else:
                _check_trained(process, path, expected, found)
        _await(_started(victims.training, str(path)))  # the next run
        _check_trained(None, path, expected, found)
        check_alone(folder, [straight], found)
    return found


def _check_checkpoint(path: Path, found: Record) -> None:
    if not path.exists():
        return
    try:
        steps = victims.steps_of(path)
    except ValueError as error:
        found["faults"].append(str(error))
        return
    if steps % victims.STEPS:
        found["faults"].append(f"a checkpoint after {steps} steps")
    found["new"] += 1
    found["temporary files"] += len([one for one in path.parent.iterdir() if one.suffix == ".part"])


def _check_trained(process: Any, path: Path, expected: bytes, found: Record) -> None:
    """A run that came to its end: the bits are those of the straight one. Then the next begins from the start."""
    if process is not None and process.exitcode != 0:
        found["faults"].append(f"a run ended with exit code {process.exitcode}")
    elif victims.training_bits(path) != expected:
        found["faults"].append("a resumed run has other bits")
    found["runs finished"] += 1
    path.unlink(missing_ok=True)


def comparisons(seed: int, small: bool) -> Record:
    """Kill comparisons that write a report, going on from what they kept, until enough kills were done."""
    n_kills, seconds = 2 if small else 200, 9.0
    rng, found = np.random.default_rng(seed), new_record(n_kills) | {"runs finished": 0, "fits kept": 0}
    with tempfile.TemporaryDirectory() as folder:
        expected, done = victims.compared(), 0
        while done < n_kills:
            done += _one_comparison(Path(folder), rng, n_kills - done, seconds, expected, found)
    return found


def _one_comparison(
    folder: Path, rng: np.random.Generator, most: int, seconds: float, expected: dict[str, bytes], found: Record
) -> int:
    """A comparison that is killed until it comes to its end, or `most` times; how often it was."""
    report, log, out = folder / "report.html", folder / "log", folder / "evidence"
    report.write_text(victims.OLD_REPORT)
    log.write_text("")
    kills = 0
    while True:
        finished = victims.finished_in(Path(f"{report}.part"))
        begun = len(log.read_text().split())
        process = _started(victims.comparing, str(report), str(log), str(out))
        # After enough kills it may come to its end, so that there is a next run.
        if kills < most and _killed(process, rng.uniform(0, seconds)):
            kills += 1
        else:
            _await(process)
        again = set(log.read_text().split()[begun:]) & finished
        found["faults"] += [f"{name} was fitted a second time" for name in sorted(again)]
        found["fits kept"] += len(finished)
        if (fault := victims.fault_of_report(report)) is not None:
            found["faults"].append(fault)
        if process.exitcode != -signal.SIGKILL:
            break
    if process.exitcode != 0:
        found["faults"].append(f"a comparison ended with exit code {process.exitcode}")
    elif victims.read_evidence(out) != expected:
        found["faults"].append("a resumed comparison has other evidence")
    if report.read_text() == victims.OLD_REPORT:
        found["faults"].append("the report of a finished comparison is the old one")
    found["runs finished"] += 1
    check_alone(folder, [report, log, out], found)
    return kills


def _started(function: Callable[..., None], *arguments: Any) -> Any:
    process = context().Process(target=victims.quietly, args=(function, *arguments))
    process.start()
    return process


def _killed(process: Any, wait: float) -> bool:
    """Kill a process after some seconds; whether it was still at work."""
    process.join(wait)
    if process.exitcode is not None:
        return False
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


def _await(process: Any) -> None:
    process.join(300)
    if process.exitcode is None:
        process.kill()
        process.join()
