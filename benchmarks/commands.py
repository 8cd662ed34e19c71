"""The command line in a process of its own: its seconds, its peak memory and what it said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The peak is that of the program itself: what the system says of a process that has ended counts from its start, when
# it is a copy of the one that began it.
_SCRIPT = """
import sys
from likely.cli import main
place, sys.argv = sys.argv[1], ["likely", *sys.argv[2:]]
try:
    main()
finally:
    with open("/proc/self/status") as said, open(place, "w") as kept:
        kept.write(next(line.split()[1] for line in said if line.startswith("VmHWM")))
"""


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
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": os.environ | environment}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "peak"
        began = time.perf_counter()
        with subprocess.Popen([sys.executable, "-c", _SCRIPT, str(place), *arguments], **options) as process:
            assert process.stdout is not None
            said = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        if status:
            raise RuntimeError(f"`likely {' '.join(arguments)}` ended with {process.returncode}.")
        peak = 1024 * int(place.read_text())
    return Ran(wall, used.ru_utime + used.ru_stime, peak, json.loads(said))
