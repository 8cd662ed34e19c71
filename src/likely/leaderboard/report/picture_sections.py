"""The report's sections for data that are pictures: samples, reconstructions, imputations, as grids of pixels."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

import numpy as np

from likely.leaderboard.board import Entry, Leaderboard
from likely.leaderboard.report import probes
from likely.leaderboard.report.page import dash, dot, section
from likely.leaderboard.report.png import sheet

# Numbers of pictures.
N_SAMPLES = 64  # in a grid, eight by eight
N_SHOWN = 14  # in a strip, as many as the page is wide
N_MEASURED = 200  # behind the figures beside a strip


def picture_sections(board: Leaderboard, colours: dict[str, str]) -> str:
    """All sections that show pictures."""
    assert board.dataset is not None
    frame = Frame(board)
    return "".join(draw(board, frame, colours) for draw in (_samples, _reconstructions, _imputations))


class Frame:
    """Test pictures, and how pixels become colours: one scale for the data and for every model."""

    def __init__(self, board: Leaderboard):
        dataset = board.dataset
        assert dataset is not None
        assert dataset.schema.image_shape is not None
        self.schema, self.shape = dataset.schema, dataset.schema.image_shape
        self.test = probes.encoded(dataset, "test", max(N_MEASURED, N_SAMPLES), board.random_state)
        train = probes.encoded(dataset, "train", 2000, board.random_state)
        self.scale = probes.scales(train)
        # A few extreme pixels are not to make all others grey.
        self.low, self.high = (float(np.nanquantile(train, q)) for q in (0.005, 0.995))
        if self.high <= self.low:
            self.high = self.low + 1.0

    def grid(self, rows: np.ndarray, n_across: int) -> str:
        """Pictures side by side as an <img>."""
        data = base64.b64encode(sheet(rows, self.shape, self.low, self.high, n_across)).decode()
        return f'<img class="pixels" alt="{len(rows)} pictures" src="data:image/png;base64,{data}">'


def _samples(board: Leaderboard, frame: Frame, colours: dict[str, str]) -> str:
    data = frame.grid(frame.test[:N_SAMPLES], 8)
    figures = [f"<figure><figcaption>the data <small>test rows</small></figcaption>{data}</figure>"]
    for entry in _with_model(board):
        outcome = probes.samples(entry, N_SAMPLES, board.random_state)
        body = frame.grid(outcome.rows, 8) if outcome.rows is not None else dash(outcome.reason)
        figures.append(
            f"<figure><figcaption>{dot(colours[entry.name])}{escape(entry.name)}</figcaption>{body}</figure>"
        )
    return section(
        "Samples beside data",
        "64 new pictures from each model. Good ones cannot be told from the data, and differ from each other as much.",
        f'<div class="grids">{"".join(figures)}</div>',
    )


def _reconstructions(board: Leaderboard, frame: Frame, colours: dict[str, str]) -> str:
    truth = frame.test[:N_MEASURED]
    noisy = probes.corrupt(truth, frame.schema, frame.scale, board.random_state)
    everywhere = np.ones(truth.shape, dtype=bool)
    given = probes.scores(truth, noisy, everywhere, frame.schema, frame.scale)
    strips = [_strip("original", "", frame, truth), _strip("corrupted", str(given), frame, noisy)]
    for entry in _with_model(board):
        outcome = probes.cleaned(entry, noisy, frame.schema)
        scores = (
            None if outcome.rows is None else probes.scores(truth, outcome.rows, everywhere, frame.schema, frame.scale)
        )
        strips.append(_model_strip(entry, outcome, scores, frame, colours))
    how = "a tenth of the pixels flipped" if "binary" in frame.schema.kinds else "noise of half a standard deviation"
    return section(
        "Reconstructions",
        f"Test pictures with {how}, and what each model's denoise makes of them. Figures over {len(truth)} pictures.",
        _strips(strips),
    )


def _imputations(board: Leaderboard, frame: Frame, colours: dict[str, str]) -> str:
    truth = frame.test[:N_MEASURED]
    erased = np.broadcast_to(probes.lower_half(frame.shape), truth.shape)
    holes = np.where(erased, np.nan, truth)
    strips = [_strip("original", "", frame, truth), _strip("erased", "the lower half is unobserved", frame, holes)]
    for entry in _with_model(board):
        guess = probes.completed(entry, holes, frame.schema)
        scores = None if guess.rows is None else probes.scores(truth, guess.rows, erased, frame.schema, frame.scale)
        shown = probes.expected(entry, holes[:N_SHOWN], frame.schema) if guess.rows is not None else guess
        strips.append(_model_strip(entry, shown, scores, frame, colours))
    return section(
        "Imputations",
        "The lower half of each picture is erased; every model says what it expects there given the upper half. Grey "
        f"is uncertainty. The figures are those of impute over the erased pixels of {len(truth)} pictures.",
        _strips(strips),
    )


def _with_model(board: Leaderboard) -> list[Entry]:
    return [entry for entry in board.entries if entry.model is not None]


def _strip(label: str, note: str, frame: Frame, rows: np.ndarray) -> tuple[str, str]:
    return f"{escape(label)}<small>{escape(note)}</small>", frame.grid(rows[:N_SHOWN], N_SHOWN)


def _model_strip(
    entry: Entry, outcome: probes.Outcome, scores: probes.Scores | None, frame: Frame, colours: dict[str, str]
) -> tuple[str, str]:
    label = f"{dot(colours[entry.name])}{escape(entry.name)}<small>{escape(str(scores or ''))}</small>"
    if outcome.rows is None:
        return label, dash(outcome.reason)
    return label, frame.grid(outcome.rows[:N_SHOWN], N_SHOWN)


def _strips(strips: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f'<div class="label">{label}</div><div>{body}</div>' for label, body in strips)
    return f'<div class="strips">{rows}</div>'
