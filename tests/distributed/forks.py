"""Processes of a run that begin where the library has been imported: a server imports it once, and forks.

To import JAX and the library takes longer than most of what these processes then do. A fork ends as a script does that
was started by itself: by the interpreter's own end, with its hooks. JAX has no devices yet where it is forked, and so
no threads.

python -m tests.distributed.forks    serves: a line of JSON with what to start or to wait for, a line with the answer
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.distributed import run_alone

ROOT = Path(__file__).resolve().parents[2]


class Forks:
    """The server, as a context, and what it has started."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def __enter__(self) -> Forks:
        self.folder = tempfile.TemporaryDirectory()
        command = [sys.executable, "-m", "tests.distributed.forks"]
        options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.server = subprocess.Popen(command, cwd=ROOT, env=self.environment, **options)
        self.n_started = 0
        return self

    def __exit__(self, *_: Any) -> None:
        with self.server:  # closes its pipes, which ends it
            pass
        self.folder.cleanup()

    def start(self, n_devices: int, *arguments: Any) -> Fork:
        """A process of `run_alone` with so many devices."""
        self.n_started += 1
        said = Path(self.folder.name) / str(self.n_started)
        job = {"arguments": [str(value) for value in arguments], "devices": n_devices, "errors": str(said)}
        return Fork(self, self.ask(job), said)

    def ask(self, job: dict[str, Any]) -> Any:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        print(json.dumps(job), file=self.server.stdin, flush=True)
        return json.loads(self.server.stdout.readline())


class Fork:
    """A process, and what it says on stderr."""

    def __init__(self, forks: Forks, pid: int, said: Path) -> None:
        self.forks, self.pid, self._said = forks, pid, said

    def wait(self, seconds: float) -> tuple[int, str]:
        """Its exit code, below 0 for the signal that ended it, and what it said; it is killed after so long."""
        code = self.forks.ask({"pid": self.pid, "seconds": seconds})
        return code, self._said.read_text()


def serve() -> dict[str, Any] | None:
    """Start what is asked for and wait for it; in a fork, what it is to do."""
    run_alone.fits()  # imports the models, which the library does when they are first asked for
    for line in sys.stdin:
        job = json.loads(line)
        if "pid" in job:
            answer = _waited(job["pid"], job["seconds"])
        elif (answer := os.fork()) == 0:
            return job
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    return None


def _waited(pid: int, seconds: float) -> int:
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def main() -> None:
    job = serve()
    if job is None:
        return
    null = os.open(os.devnull, os.O_RDWR)
    errors = os.open(job["errors"], os.O_WRONLY | os.O_CREAT)
    for ours, standard in ((null, 0), (null, 1), (errors, 2)):
        os.dup2(ours, standard)
    import jax

    jax.config.update("jax_num_cpu_devices", job["devices"])
    run_alone.main(*job["arguments"])


if __name__ == "__main__":
    main()
