"""Work that may crash or hang its process, done in processes that are watched, and begun anew where one is lost.

The process is a module that calls `serve`. Jobs and answers are lines of JSON on its input and output.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

# A file system in memory, where there is one: a disk takes ten times as long for a small file as a reader does.
MEMORY = Path("/dev/shm")

_SECONDS_TO_START = 900.0  # to import the library, and to compile what a cold cache does not have

# The files are small, and the processes share the cores.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


class Lost(Exception):
    """How the process of a job ended."""


def watched(module: str, jobs: Sequence[Any], n_processes: int, seconds: float) -> Iterator[tuple[Any, Any]]:
    """Every job with its answer; or with a `Lost`, where its process ended or, once begun, was silent for so long."""
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        workers = [_Worker(module, Path(folder) / str(number), seconds) for number in range(n_processes)]
        for worker in workers:
            idle.put(worker)

        def done(job: Any) -> Any:
            worker = idle.get()
            try:
                return worker.answer(job)
            finally:
                idle.put(worker)

        try:
            with ThreadPoolExecutor(n_processes) as threads:
                yield from zip(jobs, threads.map(done, jobs), strict=True)
        finally:
            for worker in workers:
                worker.stop()


class _Worker:
    """A folder, and the process that works in it once there is a job."""

    def __init__(self, module: str, folder: Path, seconds: float) -> None:
        self.module, self.folder, self.seconds = module, folder, seconds
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir()

    def answer(self, job: Any) -> Any:
        """What the process says to a job, or how it ended instead; then the next job begins another."""
        process = self.process
        if process is None:
            process = self.process = self._started()
            self._line(_SECONDS_TO_START)  # It says that it is there.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
        line, late = self._line(self.seconds)
        return json.loads(line) if line.endswith(b"\n") else Lost(self._end(late))

    def _line(self, seconds: float) -> tuple[bytes, bool]:
        """The next line that the process says; it is ended if none comes for so long, which is said as well."""
        watch = threading.Timer(seconds, self.process.kill)
        watch.start()
        line = self.process.stdout.readline()
        late = not watch.is_alive()
        watch.cancel()
        return line, late

    def stop(self) -> None:
        """Let the process come to its end, which it does when no job can come any more."""
        if self.process is not None:
            with self.process:
                self.process.stdin.close()
            self.process = None

    def _end(self, late: bool) -> str:
        with self.process, contextlib.suppress(BrokenPipeError):  # closes both pipes and waits
            self.process.stdin.close()
        code, self.process = self.process.returncode, None
        how = (
            f"silent for {self.seconds} s" if late else signal.Signals(-code).name if code < 0 else f"exit code {code}"
        )
        return f"{how} {(self.folder / 'errors').read_text(errors='replace').strip()[-2000:]}".strip()

    def _started(self) -> subprocess.Popen[bytes]:
        own = {"TMPDIR": str(self.folder), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        with open(self.folder / "errors", "wb") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", self.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.folder,
                env={**os.environ, **ONE_THREAD, **own},
            )


def serve(work: Callable[[Any], Any]) -> None:
    """Do the jobs that come, until none can. What the work itself prints is no answer, and goes to the errors."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        answers.write("ready\n")
        answers.flush()
        for line in sys.stdin:
            answers.write(json.dumps(work(json.loads(line))) + "\n")
            answers.flush()


def limit_time(seconds: int) -> None:
    """Let the system end this process after so many more seconds of the processor: even machine code cannot go on."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, most))
