"""The page on many hosts: its tables are those of the record, and the model of costs has the right limits."""

from __future__ import annotations

import pytest

from benchmarks.hosts_page import DOCUMENT, best_number, kept_figures, message, speed_up, step_parts, with_tables

STEP = {"rows": 1000, "steps": 10, "busy": 0.3, "half": {"busy": 0.2}, "bytes": 1e6}


def test_the_tables_are_those_of_the_record():
    text = DOCUMENT.read_text()
    assert with_tables(text, kept_figures()) == text, "run `python -m benchmarks.hosts --page`"


def test_messages_go_round_a_ring():
    assert message("sum", 1, 1e6, 1.0, 1e6) == 0
    assert message("sum", 2, 1e6, 0.0, 1e6) == pytest.approx(1.0)  # twice, half of it
    assert message("list", 2, 1e6, 0.0, 1e6) == pytest.approx(1.0)
    assert message("sum", 1024, 1e6, 0.0, 1e6) == pytest.approx(2 * 1023 / 1024)
    assert message("list", 1024, 1e6, 0.0, 1e6) == pytest.approx(1023.0)
    assert message("sum", 64, 0, 1e-3, 1e6) == pytest.approx(0.126)


def test_a_step_is_what_every_process_does_and_what_is_shared_out():
    fixed, a_row = step_parts(STEP)
    assert (fixed, a_row) == pytest.approx((0.01, 0.0002))
    assert speed_up("VAE", STEP, 100, 1) == 1
    words = message("sum", 2, 1e6, 50e-6, 1.25e9)
    assert speed_up("VAE", STEP, 100, 2) == pytest.approx(0.03 / (0.02 + words))
    assert best_number("Circuit", STEP, 100) < best_number("Circuit", STEP, 1e7)
