"""One comparison, in a process of its own: `python -m likely.studio.job FOLDER`.

The folder has `job.json`, what to do. The process writes `board.json` after each model, with the model beside it, and
lines of JSON about its progress on standard output. It ends like Ctrl-C, with its checkpoint kept, on an interrupt and
when standard input is closed: then the studio is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from likely.leaderboard import Interrupted, Leaderboard, compare
from likely.leaderboard.board import Entry
from likely.leaderboard.live_table import Watch
from likely.storage.files import write_text
from likely.studio.source import open_data

_SECONDS_BETWEEN_LINES = 0.2
_CURVE_POINTS = 200  # of a learning curve that are kept at least, evenly; at most twice as many


class Reporter(Watch):
    """Tells the studio how far a comparison is, and keeps what is finished.

    Parameters
    ----------
    folder : the job's.
    dataset : the data, by which models are ranked.
    seed : of the comparison.
    stream : where the lines go.
    """

    def __init__(self, folder: Path, dataset: Any, seed: int, stream: TextIO):
        self.folder, self.dataset, self.seed, self.stream = folder, dataset, seed, stream
        self.entries: list[Entry] = []
        self.files: dict[str, str] = {}
        self.curves: dict[str, list[tuple[int, float]]] = {}
        self.name, self.total, self.said = "", 0, 0.0
        self.n_updates, self.stride = 0, 1
        self.is_interrupted = False

    def interrupt(self, *signal_and_frame: Any) -> None:
        """Break off, now; or at the next report, if the exception that is raised here gets lost in some callback."""
        self.is_interrupted = True
        raise KeyboardInterrupt

    def _heed(self) -> None:
        if self.is_interrupted:
            raise KeyboardInterrupt

    def stage(self, name: str, stage: str = "") -> None:
        self._heed()
        self.name, self.total, self.n_updates, self.stride = name, 0, 0, 1
        self.say({"model": name, "stage": stage or name})

    def start(self, total: int, label: str) -> None:
        self.total = total

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        self._heed()
        for value in list(metrics.values())[:1]:
            self._add_to_curve(int(done), float(value))
        if time.monotonic() - self.said >= _SECONDS_BETWEEN_LINES:
            share = done / self.total if self.total else 0.0
            figures = {key: float(value) for key, value in list(metrics.items())[:2]}
            about = {"model": self.name, "stage": "fit", "share": share, "metrics": figures}
            self.say(about | {"curve": self.curves.get(self.name, [])[-1:]})

    def _add_to_curve(self, done: int, value: float) -> None:
        """Every so many-th figure of a long training, as many throughout."""
        curve = self.curves.setdefault(self.name, [])
        if self.n_updates % self.stride == 0:
            curve.append((done, value))
        self.n_updates += 1
        if len(curve) > 2 * _CURVE_POINTS:
            del curve[1::2]
            self.stride *= 2

    def done(self, entry: Entry) -> None:
        self.entries.append(entry)
        if entry.model is not None:
            name = f"{len(self.entries) - 1}.likely"
            # A model that is made of foreign parts cannot be saved; it is on the board all the same.
            with contextlib.suppress(ValueError, TypeError):
                entry.model.save(self.folder / name)
                self.files[entry.name] = name
        self.write_board()
        self.say({"board": True})

    def write_board(self) -> None:
        """The leaderboard of what is measured so far."""
        board = Leaderboard(self.entries, self.dataset, self.seed)
        found = board.to_dict()
        for own in found["entries"]:
            own |= {"file": self.files.get(own["name"]), "curve": self.curves.get(own["name"], [])}
        write_text(self.folder / "board.json", json.dumps(found))

    def say(self, about: dict[str, Any]) -> None:
        """A line for the studio; one that is gone hears nothing."""
        self.said = time.monotonic()
        with contextlib.suppress(OSError):
            print(json.dumps(about), file=self.stream, flush=True)


def run(folder: Path, stream: TextIO) -> str:
    """Do what the folder asks for; how it ended: "done" or "stopped"."""
    asked = json.loads((folder / "job.json").read_text())
    dataset = open_data(asked["data"], asked["kinds"], asked["drop"])
    reporter = Reporter(folder, dataset, asked["seed"], stream)
    signal.signal(signal.SIGINT, reporter.interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # which the studio holds until here
    reporter.say({"stage": "start"})
    options: dict[str, Any] = {"random_state": asked["seed"], "keep_in": folder / "kept"}
    try:
        compare(asked["models"], dataset, progress=reporter, **options)
    except Interrupted:
        return "stopped"
    return "done"


def _end_with_the_studio() -> None:
    """Standard input is a pipe that nobody writes into: it ends when the studio does."""

    def wait() -> None:
        # Not through Python's buffer, whose lock an interpreter that ends would wait for.
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


def main(folder: Path) -> int:
    """Run one job; the exit code."""
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not pass for a report
    with open(folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print(json.dumps({"failed": "an earlier process of this comparison still ends; try again."}), file=stream)
            return 1
        _end_with_the_studio()
        try:
            status = run(folder, stream)
        except KeyboardInterrupt:
            status = "stopped"
        except Exception as error:
            print(json.dumps({"failed": f"{type(error).__name__}: {error}"}), file=stream, flush=True)
            return 1
        print(json.dumps({"status": status}), file=stream, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
