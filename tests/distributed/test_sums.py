"""Sums over processes: three of them here are threads, whose numbers go over a table instead of lines."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from likely.distributed import sums

N = 3


@pytest.fixture
def three(monkeypatch):
    """Calls of a function in three threads at a time, each of which is a process; what each of them gets."""
    own, table, turn = threading.local(), [None] * N, threading.Barrier(N, timeout=20)

    def exchange(words: np.ndarray, program: Any, n: int) -> np.ndarray:
        table[own.rank] = words
        turn.wait()
        if program is sums._swapped:
            heard = np.stack([one[own.rank] for one in table])
        else:
            heard = np.concatenate(table)
        turn.wait()
        return heard

    def called(function: Any) -> list[Any]:
        def one(number: int) -> Any:
            own.rank = number
            return function(number)

        with ThreadPoolExecutor(N) as pool:
            return list(pool.map(one, range(N)))

    monkeypatch.setattr(sums, "_exchange", exchange)
    monkeypatch.setattr(sums, "n_processes", lambda: N)
    monkeypatch.setattr(sums, "rank", lambda: own.rank)
    return called


def numbers(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "many": rng.normal(size=(70, 31)),
        "single": rng.normal(size=5).astype(np.float32),
        "whole": rng.integers(0, 9, 2000),
        "alone": np.array(rng.normal()),
    }


@pytest.mark.parametrize("n_shares", [1, 2])
def test_sums_are_made_in_the_order_of_the_shares(three, n_shares, monkeypatch):
    parts = [numbers(seed) for seed in range(N * n_shares)]
    expected = {name: parts[0][name].copy() for name in parts[0]}
    for part in parts[1:]:
        expected = {name: expected[name] + part[name] for name in expected}

    def check() -> None:
        for found in three(lambda rank: sums.summed(parts[rank * n_shares : (rank + 1) * n_shares])):
            for name, array in expected.items():
                assert found[name].dtype == array.dtype
                np.testing.assert_array_equal(found[name], array)

    check()
    # Another order has other last bits, and half of a sum the wrong numbers.
    in_order = sums._in_order
    for wrong in (lambda parts: in_order(list(parts)[::-1]), lambda parts: in_order(list(parts)[:2])):
        monkeypatch.setattr(sums, "_in_order", wrong)
        with pytest.raises(AssertionError):
            check()


def test_pieces_of_work_are_added_up_however_many_each_process_did(three):
    pieces = np.random.default_rng(0).normal(size=(16, 800))

    def own(rank: int) -> Any:
        first, end = sums.process_share(16)
        return sums.summed_shares([pieces[first:end]], 16)

    for (found,) in three(own):
        np.testing.assert_array_equal(found, sums._in_order(pieces))
