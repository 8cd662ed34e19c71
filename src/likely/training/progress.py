"""Progress of long work: a bar in a terminal, nothing in a pipe, or whatever reporter the caller sets.

Reporters look on; nothing they are told can change a result.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Something that is told how far a piece of work is."""

    def start(self, total: int, label: str) -> None:
        """Work of `total` units begins."""

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        """`done` units are finished; metrics as they are now."""

    def finish(self) -> None:
        """The work is over, or broke off."""


class Silent:
    """The reporter that says nothing."""

    def start(self, total: int, label: str) -> None: ...

    def update(self, done: int, metrics: Mapping[str, float]) -> None: ...

    def finish(self) -> None: ...


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
        self._progress.start()

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        text = "  ".join(f"{name} {value:.4g}" for name, value in metrics.items())
        self._progress.update(self._task, completed=done, metrics=text)

    def finish(self) -> None:
        if self._progress is not None:
            self._progress.stop()


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


def current_reporter() -> Progress:
    """The reporter in use: the one set, else a bar if standard error is a terminal, else silence."""
    chosen = _reporter.get()
    if chosen is not None:
        return chosen
    return Bar() if sys.stderr is not None and sys.stderr.isatty() else Silent()
