"""Checks that tests share with tests/controls/, where they must catch planted bugs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from likely.datasets.dataset import Split

FALSE_ALARM = 1e-6  # of one call of a check


def check_partition(split: Split, n_rows: int) -> None:
    """Every row is in exactly one part, and a tenth, rounded, in each of the smaller ones."""
    rows = np.arange(n_rows)
    parts = split.take(rows)
    assert np.array_equal(np.sort(np.concatenate(parts)), rows)
    held_out = max(1, round(n_rows / 10))
    assert [len(part) for part in parts] == [n_rows - 2 * held_out, held_out, held_out]


def check_stochastic_binarisation(binarise: Callable[[np.ndarray, int], np.ndarray], seed: int) -> None:
    """Ones are drawn at each grey value with probability grey / 255, by exact binomial tests; 0 and 255 never move."""
    n_draws = 20_000
    grey = np.tile(np.arange(256, dtype=np.uint8), (n_draws, 1))
    ones = binarise(grey, seed).sum(axis=0, dtype=np.int64)
    law = stats.binom(n_draws, np.arange(256) / 255)
    limit = FALSE_ALARM / (2 * 256)  # two tails of 256 tests
    assert (law.cdf(ones) > limit).all()
    assert (law.sf(ones - 1) > limit).all()


def check_upright(pictures: np.ndarray, labels: np.ndarray) -> None:
    """Silhouettes stand upright, objects as ones: motorbikes have their wheels below, faces are taller than wide."""
    assert pictures[:, 0, :].mean() < 0.1  # the frame is background
    motorbikes, faces = pictures[labels == 5], pictures[labels == 2]
    assert motorbikes[:, 14:].mean() > 1.5 * motorbikes[:, :14].mean()
    assert faces.any(axis=2).sum(axis=1).mean() > 1.1 * faces.any(axis=1).sum(axis=1).mean()


def check_every_row_counted(read: Callable[[bytes], object], text: bytes) -> None:
    """A table with a row cut short is refused, whichever row it is."""
    lines = text.splitlines(keepends=True)
    for i in range(1, len(lines)):
        damaged = b"".join([*lines[:i], lines[i].rpartition(b",")[0] + b"\n", *lines[i + 1 :]])
        assert f"line {i + 1} " in _complaint(read, damaged), f"line {i + 1} lacks a cell, and nobody noticed"


LOCALES = {
    "en": (",", "."),
    "de": (".", ","),
    "fr": ("\u202f", ","),
    "sv": ("\u00a0", ","),
    "ch": ("'", "."),
}


def written(cents: int, locale: str, frame: str = "{}") -> str:
    """A number of cents in the manner of a country, such as 1.234,50; `frame` puts a currency about its digits."""
    group, decimal = LOCALES[locale]
    digits = f"{abs(cents) // 100:,}".replace(",", group) + decimal + f"{abs(cents) % 100:02d}"
    return ("-" if cents < 0 else "") + frame.format(digits)


def check_amounts(read: Callable[[list[str]], list[float]], cents: list[int], locale: str, frame: str = "{}") -> None:
    """Amounts that were written in the manner of a country are read as what they are."""
    got = read([written(amount, locale, frame) for amount in cents])
    assert got == [amount / 100 for amount in cents]


def _complaint(read: Callable[[bytes], object], text: bytes) -> str:
    try:
        read(text)
    except ValueError as error:
        return str(error)
    return ""
