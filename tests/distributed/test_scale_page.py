"""The page on many hosts: its tables are those of the record, and the model of costs has the right limits."""

from __future__ import annotations

import pytest

from benchmarks.hosts_page import (
    DOCUMENT,
    best_number,
    kept_figures,
    measured_message,
    message,
    speed_up,
    step_parts,
    with_tables,
)

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
    assert message("sum", 2, 1e6, 1e-3, 1e6, n_arrays=5) == pytest.approx(1.01)  # each array by itself
    assert message("outside", 8, 1e6, 1e-3, 1e6) == message("sum", 8, 1e6, 1e-3, 1e6)


def test_a_measured_message_lies_between_those_that_were_measured():
    known = [{"bytes": 1000, "sum": 1.0}, {"bytes": 3000, "sum": 2.0}, {"bytes": 5000, "sum": 6.0}]
    assert measured_message(known, "sum", 2000) == pytest.approx(1.5)
    assert measured_message(known, "sum", 4000) == pytest.approx(4.0)
    assert measured_message(known, "sum", 4000, n_arrays=4) == pytest.approx(7.0)


def test_a_step_is_what_every_process_does_and_what_is_shared_out():
    fixed, a_row = step_parts(STEP)
    assert (fixed, a_row) == pytest.approx((0.01, 0.0002))
    assert speed_up("VAE", STEP, 100, 1) == 1
    words = message("sum", 2, 1e6, 50e-6, 1.25e9)
    assert speed_up("VAE", STEP, 100, 2) == pytest.approx(0.03 / (0.02 + words))
    assert best_number("Circuit", STEP, 100) < best_number("Circuit", STEP, 1e7)
    many = speed_up("VAE", STEP | {"arrays": 20}, 100, 2)
    assert many == pytest.approx(0.03 / (0.02 + words + 19 * 2 * 50e-6))
