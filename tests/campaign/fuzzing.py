"""Hostile files given to every reader: each is read, or refused with an error of ours, in bounded time and memory.

`python -m tests.campaign.fuzzing [INPUTS] [SEED]` runs so many inputs over all formats and prints what was found.
"""

from __future__ import annotations

import faulthandler
import json
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from likely.datasets.errors import DataError
from likely.schema import SchemaError
from likely.storage.files import FileError
from tests.campaign.formats import FORMATS, Format

SECONDS = 1.0  # of the processor that one file may take: all of them are small
# What a reader may claim beyond what the process had. Files have some kilobytes; the interpreter's and polars' own
# arenas grow by tens of megabytes whatever is read.
MEGABYTES = 512

OURS = (DataError, FileError, SchemaError)


class TooSlow(BaseException):
    """No Exception, so that no reader can swallow it."""


def fuzz(name: str, n: int, seed: int, folder: Path) -> dict[str, Any]:
    """What became of n damaged files of a format: how many were read and refused, and the faults by what they say."""
    form, outcomes, faults = FORMATS[name], Counter[str](), {}
    rng = np.random.default_rng([seed, *name.encode()])
    examples = form.examples()
    path = folder / f"file{form.ending}"
    for number in range(n):
        data = form.damage(rng, examples[number % len(examples)], form.words)
        path.write_bytes(data)
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


def campaign(n_inputs: int, seed: int) -> dict[str, dict[str, Any]]:
    """All formats, with an equal share of the inputs each; then the bombs."""
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:  # Examples are made, and whatever readers import is loaded, before memory is limited.
            fuzz(name, 4, seed + 1, Path(folder))
        from tests.campaign.bombs import explode

        limit_memory()
        found = {name: fuzz(name, -(-n_inputs // len(FORMATS)), seed, Path(folder)) for name in FORMATS}
        limit_memory()  # anew, for what polars keeps for later of the files before
        return found | {"bombs": explode(Path(folder))}


def damaged(seed: int, small: bool, n_inputs: int = 1_000_000) -> dict[str, Any]:
    """The same as one record."""
    found = campaign(10_000 if small else n_inputs, seed)
    counts = {count: sum(of[count] for of in found.values()) for count in ("inputs", "read", "refused")}
    faults = [f"{name}: {fault}" for name, of in found.items() for fault in of["faults"]]
    return counts | {"formats": len(FORMATS), "bombs": found["bombs"]["inputs"], "faults": faults}


if __name__ == "__main__":
    faulthandler.enable()
    given = [int(text) for text in sys.argv[1:]] or [10_000]
    json.dump(campaign(given[0], given[1] if len(given) > 1 else 0), sys.stdout, indent=1)
