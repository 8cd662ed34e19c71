"""Hostile files given to every reader: each is read, or refused with an error of ours, in bounded time and memory.

`python -m tests.campaign files --inputs 10000` runs so many over all formats. Run as a module of its own it is the
process that reads them, in blocks; `campaign` starts it, and another one where a file crashed or hung it.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import math
import os
import resource
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from likely.datasets.errors import DataError
from likely.schema import SchemaError
from likely.storage.files import FileError
from likely.storage.registry import model_class
from tests.campaign.formats import FORMATS, Format
from tests.campaign.watched import Lost, limit_time, serve, watched

SECONDS = 1.0  # of the processor that one file may take: all of them are small
# A timer interrupts Python only. Machine code that never comes back to it is ended by the system, and what waits for
# something that never comes, by the process that watches.
SECONDS_OF_MACHINE_CODE = 5
SECONDS_OF_SILENCE = 900.0
BLOCK = 500  # files that a process is given at once, each block with random numbers of its own
# What a reader may claim beyond what the process had. Files have some kilobytes; the interpreter's and polars' own
# arenas grow by tens of megabytes whatever is read.
MEGABYTES = 512

OURS = (DataError, FileError, SchemaError)


class TooSlow(BaseException):
    """No Exception, so that no reader can swallow it."""


def fuzz(name: str, block: int, n: int, seed: int, folder: Path) -> dict[str, Any]:
    """What became of a block of n damaged files of a format: how many were read and refused, and the faults."""
    form, outcomes, faults = FORMATS[name], Counter[str](), {}
    rng = np.random.default_rng([seed, block, *name.encode()])
    examples = form.examples()
    path = folder / f"file{form.ending}"
    for number in range(n):
        data = form.damage(rng, examples[number % len(examples)], form.words)
        path.write_bytes(data)
        limit_time(SECONDS_OF_MACHINE_CODE)
        outcome = one(form, path)
        outcomes[outcome if outcome in ("read", "refused") else "fault"] += 1
        if outcome not in ("read", "refused"):
            faults.setdefault(outcome, data[:2000].hex())
    return {"inputs": n, "read": outcomes["read"], "refused": outcomes["refused"], "faults": faults}


def one(form: Format, path: Path, seconds: float = SECONDS) -> str:
    """What a reader makes of a file: "read", "refused", or what went wrong."""
    signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            form.read(path)
    except OURS as error:
        return "refused" if str(error) else f"{type(error).__name__} without a word"
    except TooSlow:
        return f"took more than {seconds} s"
    except BaseException as error:  # polars panics with a BaseException of its own
        return f"{type(error).__name__}: {str(error)[:200]} {_place(error)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "read"


def _too_slow(*_: Any) -> None:
    raise TooSlow


def _place(error: BaseException) -> str:
    """Where in the library it happened."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "likely" in Path(file).parts:
            place = f"({Path(file).name}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place


def limit_memory() -> None:
    """Let this process have little more memory than it has, so that claims of a file become errors."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + (MEGABYTES << 20), most))


def campaign(n_inputs: int, seed: int, n_processes: int = 1, minutes: float = math.inf) -> dict[str, dict[str, Any]]:
    """The bombs, then all formats with as many inputs as their shares say, or as fit into so many minutes.

    Files and figures are functions of the seed alone, however many processes there are.
    """
    until = time.monotonic() + 60 * minutes
    whole = sum(form.share for form in FORMATS.values())
    wanted = {name: math.ceil(n_inputs * form.share / whole) for name, form in FORMATS.items()}
    jobs = [(name, at // BLOCK, min(BLOCK, n - at), seed) for name, n in wanted.items() for at in range(0, n, BLOCK)]
    jobs.sort(key=lambda job: job[1])  # A block of every format, then the next: what is cut off is the end of all.
    found = {name: {"inputs": 0, "read": 0, "refused": 0, "faults": {}} for name in (*FORMATS, "bombs")}
    for (name, block, *_), answer in watched(__name__, [("bombs", 0, 0, seed), *jobs], n_processes, SECONDS_OF_SILENCE):
        of = found[name]
        if isinstance(answer, Lost):
            answer = {"faults": {f"block {block}: {answer}": ""}}
        for count in ("inputs", "read", "refused"):
            of[count] += answer.get(count, 0)
        of["faults"] |= answer["faults"]
        sys.stderr.write("".join(f"{name}: {fault} {data}\n" for fault, data in answer["faults"].items()))
        if time.monotonic() > until:
            break
    return found


def damaged(seed: int, small: bool, n_inputs: int = 1_000_000, minutes: float = math.inf) -> dict[str, Any]:
    """The same as one record."""
    found = campaign(10_000 if small else n_inputs, seed, len(os.sched_getaffinity(0)), minutes)
    counts = {count: sum(of[count] for of in found.values()) for count in ("inputs", "read", "refused")}
    faults = [f"{name}: {fault}" for name, of in found.items() for fault in of["faults"]]
    return counts | {"formats": len(FORMATS), "bombs": found["bombs"]["inputs"], "faults": faults}


def prepare(folder: Path) -> None:
    """Make the examples and read them, so that whatever readers import and compile is there before they are limited."""
    for form in FORMATS.values():
        path = folder / f"file{form.ending}"
        for example in form.examples():
            path.write_bytes(example)
            form.read(path)
    model_class("RBM")  # which damaged descriptions name


def work(job: tuple[str, int, int, int]) -> dict[str, Any]:
    """A block of damaged files, or the bombs."""
    name, block, n, seed = job
    limit_memory()  # anew, for what polars keeps for later of the files before
    if name != "bombs":
        return fuzz(name, block, n, seed, Path.cwd())
    limit_time(1000)
    return importlib.import_module("tests.campaign.bombs").explode(Path.cwd())


if __name__ == "__main__":
    faulthandler.enable()
    prepare(Path.cwd())
    gc.freeze()  # What is imported stays; going through it takes longer than to read a hundred files.
    serve(work)
