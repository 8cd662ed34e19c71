"""`compare`: fit models on one data set, measure their evidence on its test rows, rank them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]

from likely.datasets import Dataset, TextDataset, load
from likely.datasets.dataset import split_rows, with_target
from likely.leaderboard.board import Entry, Leaderboard
from likely.leaderboard.contenders import contenders
from likely.leaderboard.kept import Kept, place_for
from likely.leaderboard.live_table import Watch, open_watch
from likely.leaderboard.measuring import Predictions, Rows, measured
from likely.leaderboard.prediction import known_rows
from likely.leaderboard.report.probes import take
from likely.leaderboard.stacking import NAME as STACK
from likely.leaderboard.stacking import check_stacked, stacked
from likely.schema import Schema, as_array, as_frame
from likely.storage.files import check_writable
from likely.training.progress import showing


class Interrupted(KeyboardInterrupt):
    """A comparison that was broken off by Ctrl-C; `board` has the models that were finished."""

    def __init__(self, board: Leaderboard):
        super().__init__(f"{len(board)} models are finished, {len(board.unfinished)} are not")
        self.board = board


def compare(
    models: Any,
    dataset: Any,
    *,
    target: str | None = None,
    random_state: int = 0,
    n_score_rows: int | None = None,
    report: str | os.PathLike[str] | None = None,
    progress: bool | Watch | None = None,
    keep_in: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    stack: bool = False,
    n_jobs: int | None = None,
) -> Leaderboard:
    """Fit models on the training rows and rank them by the evidence of the test rows.

    Parameters
    ----------
    models : list of models or of their names ("rbm"), {name: model}, a single one of these, or None for a line-up of
        all registered models at sizes that suit the data. They are cloned, never changed.
    dataset : a `Dataset`, a name or path for `likely.datasets.load`, or rows (array, data frame), which are split
        80 / 10 / 10; or a `TextDataset`, for models of text.
    target : a column to be predicted from the others; "label" for the labels that a named data set has of its own.
        Predictors are then ranked by the evidence of log p(target | row), with their accuracy or R² beside it. A model
        of rows is taken as one of rows and target together.
    random_state : seed of the split, of the models that have none of their own, and of the report's draws.
    n_score_rows : score only so many test rows, drawn at random; None scores all.
    report : where to write the HTML report; None writes none.
    progress : True shows a live table on the terminal, or a line for each model where stderr is none; False shows
        nothing; None shows the table if stderr is a terminal; a `Watch` of your own is told. It never changes results.
    keep_in : a folder for finished work. A comparison that was broken off goes on from there when it is called again
        with the same data and settings; what it kept is removed when it is done. None keeps nothing.
    fresh : start anew, whatever was kept.
    stack : also mix all models whose evidence of the table's rows is exact or a lower bound into a `likely.Stack`, with
        weights by the validation rows; it is the last to be measured. Costs the scoring of the validation rows.
    n_jobs : how many models are measured at a time, in processes of their own, by joblib; -1 for one a core. None is
        one after the other here, or what a `joblib.parallel_config` around the call says: its backends take the work to
        other machines. It never changes results; times are those of machines that do several things at once.

    Returns
    -------
    Leaderboard
        A model that cannot be fitted, or whose evidence is of another kind of thing, stands apart with the reason.

    Raises
    ------
    KeyboardInterrupt : it was broken off. The report of the models that were finished is written, and they are on the
        exception's `board`.

    Examples
    --------
    >>> board = compare(["independent", "mixture"], "digits")
    >>> [entry.name for entry in board.ranked]
    ['Mixture', 'Independent']
    >>> board = compare(["independent", "mixture"], "digits", target="label")
    >>> board.best.score > 0.8, board.best.evidence.kind
    (True, 'exact')
    """
    seed = _check_seed(random_state)
    check_jobs(n_jobs)
    if report is not None:
        check_writable(report)
    data = as_dataset(dataset, seed)
    _check_rows(n_score_rows)
    if target is not None:
        data = _predicted(data, target)
    models, test, how = _meeting(models, data, seed, n_score_rows, target)
    if stack:
        check_stacked(models, isinstance(data, Dataset), target)
    settings = {"seed": seed, "rows": n_score_rows, "target": target}
    kept = place_for(keep_in, data, how.rows(test), settings)
    if fresh:
        kept.forget()
    with open_watch(progress, data, [*models, *[STACK][:stack]]) as watch:
        entries, unfinished = _measure(models, data, test, watch, how, kept, n_jobs)
        if stack and not unfinished:
            watch.stage(STACK, "fit")
            entries.append(stacked(entries, data, seed))
            watch.done(entries[-1])
        scored = {} if target is None else {"target": target, "score_name": how.score_name(entries)}
        shown = replace(data, test=how.rows(test), **_numbers_of(data, how.rows(test), n_score_rows, seed))
        board = Leaderboard(entries, shown, seed, unfinished=unfinished, **scored)
        if report is not None and entries:
            watch.stage("report")
            _write_report(board, report)
    if unfinished:
        raise Interrupted(board)
    kept.discard()
    return board


def _measure(
    models: dict[str, Any], data: Any, test: Any, watch: Watch, how: Rows, kept: Kept, n_jobs: int | None
) -> tuple[list[Entry], list[str]]:
    """Entries of the models that were finished, and names of those that an interrupt left."""
    entries: list[Entry] = []
    if effective_n_jobs(n_jobs) == 1:
        found = (measured(name, model, data, test, watch, how, kept) for name, model in models.items())
    else:
        # Files of what is finished are removed at the end by whoever wrote them, which the workers do not live to see.
        kept.expect(models)
        watch.stage(next(iter(models)), "fit")
        work = [delayed(_apart)(name, model, data, test, how, kept) for name, model in models.items()]
        found = Parallel(n_jobs=n_jobs, return_as="generator")(work)
    try:
        for entry in found:
            entries.append(entry)
            watch.done(entry)  # after it is on the list: what is said to be done is in the report
    except KeyboardInterrupt:
        watch.interrupted()
    return entries, list(models)[len(entries) :]


def _apart(name: str, model: Any, data: Any, test: Any, how: Rows, kept: Kept) -> Entry:
    """A model measured in a process of its own, where there is nobody to tell."""
    with showing(False):
        return measured(name, model, data, test, Watch(), how, kept)


def _write_report(board: Leaderboard, path: str | os.PathLike[str]) -> None:
    """Write the report; broken off in the middle, it is the old one that stays."""
    try:
        board.to_report(path)
    except KeyboardInterrupt:
        raise Interrupted(board) from None


def _meeting(
    models: Any, data: Any, seed: int, n_score_rows: int | None, target: str | None
) -> tuple[dict[str, Any], Any, Rows]:
    """Who is compared, what they are scored on, and how."""
    if isinstance(data, TextDataset):
        from likely.leaderboard.text_contest import contest, some_sentences

        meeting = contest(models, data, seed)
        return meeting.models, some_sentences(data.test, n_score_rows, seed), Rows(vocabulary=meeting.vocabulary)
    if target is None:
        return contenders(models, data, seed), _some_rows(data.test, n_score_rows, seed), Rows()
    known = known_rows(data, "test")
    if known is None:
        raise ValueError(f"no test row of {data.name} has a value of {target!r}, so there is nothing to judge by.")
    index = _some_rows(np.arange(len(known[1])), n_score_rows, seed)
    return contenders(models, data, seed, is_target=True), (take(known[0], index), known[1][index]), Predictions()


def _predicted(data: Any, target: str) -> Dataset:
    """The data set with the target taken out of its rows."""
    if isinstance(data, TextDataset):
        raise ValueError(f"{data.name} is text, which has no column {target!r} to predict.")
    return with_target(data, target)


def as_dataset(dataset: Any, seed: int = 0) -> Any:
    """A data set, of a table or of text, from whatever `compare` takes."""
    if isinstance(dataset, Dataset | TextDataset):
        return dataset
    if isinstance(dataset, str | os.PathLike):
        return load(dataset)
    rows = dataset if as_frame(dataset) is not None else as_array(dataset)
    split = split_rows(len(rows), name="the data", seed=seed)
    train, valid, test = (take(rows, index) for index in split)
    return Dataset(train, valid, test, Schema.infer(rows), "data", row_numbers=split.row_numbers(len(rows)))


def _some_rows(rows: Any, n: int | None, seed: int) -> Any:
    _check_rows(n)
    if n is None or n >= len(rows):
        return rows
    return take(rows, np.sort(np.random.RandomState(seed).permutation(len(rows))[:n]))


def _numbers_of(data: Any, test: Any, n: int | None, seed: int) -> dict[str, Any]:
    """The numbers of the scored rows in their file, as a keyword of the data set; None where they are not known."""
    known = getattr(data, "row_numbers", None)
    if known is None:
        return {}
    numbers = _some_rows(known["test"], n, seed)
    return {"row_numbers": known | {"test": numbers} if len(numbers) == len(test) else None}


def _check_rows(n: Any) -> None:
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise ValueError(f"n_score_rows must be a positive integer or None, got {n!r}.")


def check_jobs(n_jobs: Any) -> None:
    """Refuse a number of processes that is none."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0 (-1 is one a core), or None, got {n_jobs!r}.")


def _check_seed(random_state: Any) -> int:
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"random_state must be a non-negative integer, got {random_state!r}.")
    return int(random_state)
