"""Comparisons that run beside the server, each in a process of its own, so that none can block or break the page.

A job is a folder: `job.json`, what was asked; `state.json`, how it stands; `board.json` and the models, which its
process writes. Stopping is an interrupt: the process keeps its checkpoint, and the same job goes on from there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from likely.storage.files import write_text
from likely.studio.requests import BadRequest
from likely.studio.workspace import Workspace, read_json

MAX_QUEUED = 20
_SECONDS_TO_STOP = 60.0  # after which a process that does not heed an interrupt is killed
_NUMBER = re.compile(r"\d{4}")
ACTIVE = ("queued", "running", "stopping")


class Job:
    """One comparison: what was asked, how it stands, and its process while it has one."""

    def __init__(self, folder: Path):
        self.folder, self.number = folder, folder.name
        self.asked = read_json(folder / "job.json")
        self.state: dict[str, Any] = read_json(folder / "state.json") or {"status": "stopped"}
        self.now: dict[str, Any] = {}  # the stage that its process is at
        self.curve: list[Any] = []  # of the model that is being fitted
        self.last_word: dict[str, Any] = {}  # how its process said that it ended; apart from `state`, which a stop sets
        self.process: subprocess.Popen[str] | None = None
        self.version = 0  # counts changes, for those who watch

    @property
    def status(self) -> str:
        """queued, running, stopping, stopped, failed or done."""
        return str(self.state.get("status", "stopped"))

    @property
    def board(self) -> dict[str, Any]:
        """What is measured so far."""
        return read_json(self.folder / "board.json")

    def set_status(self, status: str, reason: str = "") -> None:
        """Say how it stands, here and on the disk."""
        self.state = {"status": status, "reason": reason}
        self.version += 1
        write_text(self.folder / "state.json", json.dumps(self.state))

    def hear(self, line: str) -> None:
        """A line of its process."""
        try:
            about = json.loads(line)
        except ValueError:
            return
        if about.get("model") != self.now.get("model"):
            self.curve = []
        self.curve = (self.curve + about.get("curve", []))[-400:]
        self.now = about if "stage" in about else self.now
        self.last_word |= {key: about[key] for key in ("failed", "status") if key in about}
        self.version += 1


class Jobs:
    """All jobs of a workspace, and a queue of those that wait.

    Parameters
    ----------
    space : the workspace, in whose folder jobs live.
    n_at_once : how many run at a time.
    """

    def __init__(self, space: Workspace, n_at_once: int = 1):
        self.space, self.n_at_once = space, n_at_once
        self.lock = threading.RLock()
        self.closed = False
        folders = sorted(path for path in space.jobs_folder.glob("*") if _NUMBER.fullmatch(path.name))
        self.jobs = {path.name: Job(path) for path in folders if (path / "job.json").is_file()}
        for job in self.jobs.values():
            if job.status in ACTIVE:  # of a studio that ended before it
                job.set_status("stopped", "the studio ended before it did")

    def find(self, number: str) -> Job:
        """A job by its number."""
        if number not in self.jobs:
            raise BadRequest("there is no such comparison.", 404)
        return self.jobs[number]

    def start(self, models: list[str], seed: int) -> Job:
        """A new comparison, in the queue."""
        with self.lock:
            if sum(job.status in ACTIVE for job in self.jobs.values()) >= MAX_QUEUED:
                raise BadRequest(f"{MAX_QUEUED} comparisons wait already: stop one first.", 409)
            number = f"{max((int(known) for known in self.jobs), default=0) + 1:04d}"
            folder = self.space.jobs_folder / number
            folder.mkdir(parents=True)
            asked = {"data": self._data(), "kinds": self.space.kinds, "drop": self.space.drop}
            write_text(folder / "job.json", json.dumps(asked | {"models": models, "seed": seed, "asked": time.time()}))
            job = self.jobs[number] = Job(folder)
            job.set_status("queued")
            self._advance()
            return job

    def stop(self, number: str) -> None:
        """Interrupt a job; what it finished stays."""
        with self.lock:
            job = self.find(number)
            if job.status == "queued":
                job.set_status("stopped")
            elif job.status == "running" and job.process is not None:
                job.set_status("stopping")
                job.process.send_signal(signal.SIGINT)
                timer = threading.Timer(_SECONDS_TO_STOP, job.process.kill)
                timer.daemon = True
                timer.start()

    def resume(self, number: str) -> None:
        """Go on with a job that was stopped or broke off."""
        with self.lock:
            job = self.find(number)
            if job.status in ("stopped", "failed"):
                job.set_status("queued")
                self._advance()

    def close(self) -> None:
        """Stop all, as an interrupt does, and wait for them."""
        with self.lock:
            self.closed = True
            for number, job in self.jobs.items():
                if job.status in ("queued", "running"):
                    self.stop(number)
        for job in self.jobs.values():
            if job.process is not None:
                job.process.wait()

    def _data(self) -> str:
        """The data as the process, which runs in the same folder, finds them."""
        if self.space.data is None:
            raise BadRequest("there is no table to compare models on: start the studio with one.", 409)
        return self.space.data

    def _advance(self) -> None:
        """Start what waits, if there is room."""
        running = sum(job.status in ("running", "stopping") for job in self.jobs.values())
        for job in self.jobs.values():
            if job.status == "queued" and running < self.n_at_once and not self.closed:
                self._run(job)
                running += 1

    def _run(self, job: Job) -> None:
        job.now, job.curve, job.last_word = {}, [], {}
        with open(job.folder / "log.txt", "ab") as log, _held_interrupts():
            job.process = subprocess.Popen(
                [sys.executable, "-m", "likely.studio.job", str(job.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                start_new_session=True,  # Ctrl-C in the terminal is the studio's, which passes it on
            )
        job.set_status("running")
        threading.Thread(target=self._watch, args=(job, job.process), daemon=True).start()

    def _watch(self, job: Job, process: subprocess.Popen[str]) -> None:
        """Hear what a process says until it ends, then say how."""
        assert process.stdout is not None
        assert process.stdin is not None
        for line in process.stdout:
            job.hear(line)
        code = process.wait()
        process.stdout.close()
        process.stdin.close()
        with self.lock:
            job.process, job.now = None, {}
            if code == 0 and job.last_word.get("status") in ("done", "stopped"):
                job.set_status(job.last_word["status"])
            elif code < 0 and job.status == "stopping":  # before it had anything to keep, or at last killed
                job.set_status("stopped")
            elif code < 0:
                name = signal.Signals(-code).name
                job.set_status("failed", f"its process was ended from outside ({name}); what it finished is kept.")
            else:
                reason = (
                    job.last_word.get("failed") or f"its process ended with code {code}; see {job.folder / 'log.txt'}"
                )
                job.set_status("failed", str(reason))
            self._advance()


@contextlib.contextmanager
def _held_interrupts() -> Iterator[None]:
    """Processes that are begun here hold an interrupt until they are ready for it.

    While Python imports, an exception that a signal raises may come up in some callback of a library, and be lost.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
