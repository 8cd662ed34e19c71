"""Progress of long work: a bar in a terminal, lines in a pipe where they are asked for, or whatever reporter is set.

Reporters look on; nothing they are told can change a result.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol, TextIO, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Something that is told how far a piece of work is."""

    def start(self, total: int, label: str) -> None:
        """Work of `total` units begins."""

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        """`done` units are finished; metrics as they are now."""

    def finish(self) -> None:
        """The work is over, or broke off."""


# Between lines: the first comes after so many seconds, and each wait is longer than the last by half.
FIRST_LINE_SECONDS = 5.0
_LONGER = 1.5


class Silent:
    """The reporter that says nothing."""

    def start(self, total: int, label: str) -> None: ...

    def update(self, done: int, metrics: Mapping[str, float]) -> None: ...

    def finish(self) -> None: ...


@contextmanager
def unheard() -> Iterator[None]:
    """A terminal that is closed, or a pipe that nobody reads, ends no work: what cannot be said is not said."""
    with suppress(OSError, ValueError):  # ValueError: of a stream that was closed in this process
        yield


class Bar:
    """A Rich progress bar on standard error, gone when the work is done."""

    def __init__(self) -> None:
        self._progress: Any = None

    def start(self, total: int, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[metrics]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(label, total=total, metrics="")
        with unheard():
            self._progress.start()

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        text = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        with unheard():
            self._progress.update(self._task, completed=done, metrics=text)

    def finish(self) -> None:
        if self._progress is not None:
            with unheard():
                self._progress.stop()


class LineReporter:
    """A line now and then, for a pipe, a log or a notebook; nothing of work that is done within seconds.

    Parameters
    ----------
    stream : where lines go; None for standard error as it is then.
    prefix : what lines begin with, in place of the work's own label.
    """

    def __init__(self, stream: TextIO | None = None, prefix: str = "") -> None:
        self.stream, self.prefix, self.label, self.total = stream, prefix, "", 0
        self.began = time.perf_counter()
        self.wait = FIRST_LINE_SECONDS
        self.due = self.began + self.wait

    def start(self, total: int, label: str) -> None:
        self.total, self.label = total, self.prefix or label
        if not self.prefix:
            self.began = time.perf_counter()
            self.wait = FIRST_LINE_SECONDS
            self.due = self.began + self.wait

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        now = time.perf_counter()
        if now < self.due:
            return
        text = ", ".join(f"{name} {value:.4g}" for name, value in list(metrics.items())[:3])
        share = f"{done / self.total:.0%} " if self.total else ""
        line = f"{self.label}: {share}after {now - self.began:.0f} s{', ' if text else ''}{text}"
        with unheard():
            print(line, file=self.stream or sys.stderr, flush=True)
        self.wait *= _LONGER
        self.due = now + self.wait

    def finish(self) -> None: ...


_reporter: ContextVar[Progress | None] = ContextVar("likely_progress", default=None)


@contextmanager
def use_reporter(reporter: Progress | None) -> Iterator[None]:
    """Within the context, work is reported to `reporter`; None means to nobody.

    >>> class Last(Silent):
    ...     def update(self, done, metrics):
    ...         self.done = done
    >>> last = Last()
    >>> with use_reporter(last):
    ...     current_reporter().update(3, {"loss": 0.5})
    >>> last.done
    3
    """
    token = _reporter.set(Silent() if reporter is None else reporter)
    try:
        yield
    finally:
        _reporter.reset(token)


@contextmanager
def showing(progress: bool | None) -> Iterator[None]:
    """Within the context, work is shown: True by a bar in a terminal and by lines elsewhere, False not at all, None as
    it was.
    """
    if progress is not None and not isinstance(progress, bool):
        raise TypeError(f"`progress` must be True, False or None, got {progress!r}.")
    if progress is None:
        yield
        return
    with use_reporter((Bar() if is_terminal() else LineReporter()) if progress else None):
        yield


def current_reporter() -> Progress:
    """The reporter in use: the one set, else a bar if standard error is a terminal, else silence.

    Of several processes the first one reports.
    """
    from likely import distributed  # loads JAX, which commands that only list things do without

    if not distributed.is_first():
        return Silent()
    chosen = _reporter.get()
    if chosen is not None:
        return chosen
    return Bar() if is_terminal() else Silent()


def is_terminal() -> bool:
    """Whether standard error is one."""
    return sys.stderr is not None and sys.stderr.isatty()
