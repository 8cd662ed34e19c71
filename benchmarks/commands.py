"""The command line in a process of its own: its seconds, its peak memory and what it said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

_SCRIPT = "import sys; from likely.cli import main; sys.argv[0] = 'likely'; main()"


@dataclass(frozen=True)
class Ran:
    """Seconds on the wall and of the processor, all cores together, the peak of its memory in bytes, and its answer."""

    wall: float
    cpu: float
    peak: int
    answer: Any

    def to_json(self) -> dict[str, Any]:
        """All of it but the answer."""
        return {"wall": round(self.wall, 3), "cpu": round(self.cpu, 3), "peak": self.peak}


def likely_command(arguments: list[str], **environment: str) -> Ran:
    """`likely ARGUMENTS`, which must answer in JSON, with these variables besides those of this process."""
    began = time.perf_counter()
    command = [sys.executable, "-c", _SCRIPT, *arguments]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": os.environ | environment}
    with subprocess.Popen(command, **options) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if status:
        raise RuntimeError(f"`likely {' '.join(arguments)}` ended with {process.returncode}.")
    return Ran(wall, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss, json.loads(said))
