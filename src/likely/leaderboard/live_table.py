"""What a comparison shows while it works: a live table on the terminal, lines in a pipe, or nothing.

It looks on and changes nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from likely.leaderboard.board import Entry
from likely.leaderboard.wording import evidence, seconds
from likely.training.progress import LineReporter, is_terminal, unheard, use_reporter

if TYPE_CHECKING:
    from rich.table import Table

    from likely.datasets import Dataset

_STAGES = {"fit": "fitting", "score": "scoring", "report": "drawing the report"}
_BAR_CELLS = 16


class Watch:
    """Is told of each stage and each result; as it stands it is silent. Also a reporter for the training loop."""

    def stage(self, name: str, stage: str = "") -> None:
        """A model's fit or score begins, or the report's drawing."""

    def done(self, entry: Entry) -> None:
        """A model is measured."""

    def interrupted(self) -> None:
        """The model at work was broken off; the report of those before it is still to come."""

    def start(self, total: int, label: str) -> None:
        """Training of `total` units begins."""

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        """`done` units are finished."""

    def finish(self) -> None:
        """Training is over."""


class LiveTable(Watch):
    """A table that grows: results of the models that are done, a bar for the one at work."""

    def __init__(self, title: str, names: list[str]):
        self.title, self.names = title, names
        self.entries: dict[str, Entry] = {}
        self.current, self.doing, self.since = "", "", time.perf_counter()
        self.total, self.finished, self.metrics = 0, 0, ""

    def stage(self, name: str, stage: str = "") -> None:
        self.current, self.doing, self.since = name, _STAGES[stage or name], time.perf_counter()
        self.total, self.finished, self.metrics = 0, 0, ""

    def done(self, entry: Entry) -> None:
        self.entries[entry.name] = entry
        self.current = ""

    def start(self, total: int, label: str) -> None:
        self.total, self.finished = total, 0

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        self.finished = done
        self.metrics = "  ".join(f"{key} {value:.4g}" for key, value in list(metrics.items())[:2])

    def finish(self) -> None:
        self.total = 0

    def __rich__(self) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(title=self.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for heading in ("", "model", "log p, nats/row", "fit", "score"):
            table.add_column(heading, no_wrap=True)
        for name in self.names:
            table.add_row(*self._cells(name))
        if self.current == "report":
            table.add_row("▸", "[dim]report.html[/]", f"[cyan]{self.doing}[/]", self._elapsed(), "")
        return table

    def _cells(self, name: str) -> tuple[str, ...]:
        from rich.markup import escape

        entry = self.entries.get(name)
        if entry is not None:
            failed = entry.kind == "unavailable"
            figure = f"[dim]{escape((entry.failure or 'no evidence')[:60])}[/]" if failed else evidence(entry)
            mark = "[yellow]–[/]" if failed else "[green]✓[/]"
            return mark, escape(name), figure, seconds(entry.fit_seconds), seconds(entry.score_seconds)
        if name == self.current:
            return "[cyan]▸[/]", escape(name), f"[cyan]{self._progress()}[/]", self._elapsed(), ""
        return "[dim]·[/]", f"[dim]{escape(name)}[/]", "", "", ""

    def _progress(self) -> str:
        if not self.total:
            return self.doing
        filled = round(_BAR_CELLS * min(1.0, self.finished / self.total))
        bar = "━" * filled + "╌" * (_BAR_CELLS - filled)
        return f"{bar} {self.finished / self.total:4.0%}  {self.metrics}".rstrip()

    def _elapsed(self) -> str:
        return f"[dim]{seconds(time.perf_counter() - self.since)}[/]"


class Lines(Watch):
    """A line for each model that is measured, and one now and then while a long training goes on."""

    def __init__(self, names: list[str], stream: TextIO):
        self.names, self.stream = names, stream
        self.current, self.since, self.training = "", time.perf_counter(), LineReporter(stream)

    def stage(self, name: str, stage: str = "") -> None:
        if name != self.current:
            self.current, self.since = name, time.perf_counter()
            self.training = LineReporter(self.stream, self._place(name))

    def done(self, entry: Entry) -> None:
        words = entry.failure or (entry.evidence.reason if entry.evidence is not None else "") or "no evidence"
        if entry.kind != "unavailable":
            words = f"log p {evidence(entry)}, scored in {seconds(entry.score_seconds)}"
        spent = f"fitted in {seconds(entry.fit_seconds)}, " if entry.model is not None else ""
        before = "" if self.current == entry.name else "kept from before: "  # no stage of it was begun now
        self._say(f"{self._place(entry.name)}: {before}{spent}{words}")

    def interrupted(self) -> None:
        self._say(f"{self._place(self.current)}: interrupted")

    def start(self, total: int, label: str) -> None:
        self.training.start(total, "")

    def update(self, done: int, metrics: Mapping[str, float]) -> None:
        self.training.update(done, metrics)

    def finish(self) -> None:
        """Nothing is said: the model's own line follows."""

    def close(self) -> None:
        """The comparison is over."""
        if self.current == "report":
            self._say(f"report: drawn in {seconds(time.perf_counter() - self.since)}")

    def _place(self, name: str) -> str:
        return f"{self.names.index(name) + 1}/{len(self.names)} {name}" if name in self.names else name

    def _say(self, text: str) -> None:
        with unheard():
            print(text, file=self.stream, flush=True)


@contextmanager
def open_watch(progress: bool | Watch | None, data: Dataset, names: list[str]) -> Iterator[Watch]:
    """A watch for the time of a comparison, or the one that is given; training reports to it as well."""
    if isinstance(progress, Watch):
        with use_reporter(progress):
            yield progress
        return
    terminal = is_terminal()
    if not (terminal if progress is None else progress) or sys.stderr is None:
        watch = Watch()
        with use_reporter(watch):
            yield watch
        return
    if not terminal:
        lines = Lines(names, sys.stderr)
        with use_reporter(lines):
            yield lines
        lines.close()
        return
    from rich.console import Console
    from rich.live import Live

    table = LiveTable(f"{data.name}: comparing {len(names)} models", names)
    view: Any = Live(table, console=Console(stderr=True), transient=True, refresh_per_second=5)
    with use_reporter(table):
        with unheard():
            view.start()
        try:
            yield table
        finally:
            with unheard():
                view.stop()
