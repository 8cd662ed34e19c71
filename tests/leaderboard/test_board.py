"""The leaderboard's logic against evidences made by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from likely.contract.evidence import Evidence
from likely.datasets import Dataset
from likely.leaderboard import Entry, Leaderboard
from likely.schema import Measure, Schema


def exact(values, **about):
    return Evidence.exact(values, method="by hand", **about)


def bound(values, **about):
    return Evidence.lower_bound(values, method="by hand", **about)


def estimate(values, lower, upper=np.inf, **about):
    return Evidence.estimate(values, lower, upper, method="by hand", **about)


ROWS = np.array([-2.0, -2.2, -1.8, -2.1, -1.9])
NUDGES = np.array([0.01, -0.01, 0.02, -0.02, 0.0])


def test_rank_goes_by_the_lower_limit_not_by_the_value():
    optimist = Entry("optimist", estimate(ROWS + 5, ROWS - 3, ROWS + 6))
    sober = Entry("sober", exact(ROWS))
    board = Leaderboard([optimist, sober])
    assert [(e.rank, e.name) for e in board] == [(1, "sober"), (2, "optimist")]
    assert board["optimist"].lower == pytest.approx(np.mean(ROWS - 3))
    assert board["optimist"].mean > board["sober"].mean


def test_order_does_not_depend_on_the_order_given():
    entries = [Entry(str(i), exact(ROWS - i)) for i in (2, 0, 1)]
    assert [e.name for e in Leaderboard(entries)] == ["0", "1", "2"]
    assert [e.name for e in Leaderboard(reversed(entries))] == ["0", "1", "2"]


def test_difference_to_the_best_is_paired():
    board = Leaderboard([Entry("a", exact(ROWS)), Entry("b", exact(ROWS - 1 + NUDGES))])
    best, second = board
    assert best.standing == "best"
    assert best.interval == (0.0, 0.0)
    assert second.difference.mean == pytest.approx(-1.0)
    # The rows' own spread cancels: what is left is that of the nudges.
    assert second.difference.stderr == pytest.approx(NUDGES.std(ddof=1) / math.sqrt(5))
    assert second.standing == "behind"
    assert second.interval[1] < 0


def test_a_difference_within_the_error_is_a_tie():
    board = Leaderboard([Entry("a", exact(ROWS)), Entry("b", exact(ROWS + NUDGES - 0.005))])
    assert board[1].interval[0] < 0 < board[1].interval[1]
    assert board[1].standing == "tied"


def test_a_bound_leaves_open_what_lies_above_it():
    board = Leaderboard([Entry("exact", exact(ROWS)), Entry("bound", bound(ROWS - 1 + NUDGES))])
    assert [e.name for e in board] == ["exact", "bound"]
    assert board["bound"].interval[1] == math.inf
    assert board["bound"].standing == "open"


def test_exact_below_a_leading_bound_is_surely_behind():
    board = Leaderboard([Entry("exact", exact(ROWS - 1 + NUDGES)), Entry("bound", bound(ROWS))])
    assert [e.name for e in board] == ["bound", "exact"]
    assert board["exact"].interval[0] == -math.inf
    assert board["exact"].standing == "behind"


def test_other_measure_stands_apart_with_the_reason():
    density = Entry("density", exact(ROWS + 100, measure="lebesgue"))
    board = Leaderboard([density, Entry("a", exact(ROWS)), Entry("b", exact(ROWS - 1))])
    assert [e.name for e in board.ranked] == ["a", "b"]
    (apart,) = board.apart
    assert apart.rank is None
    assert apart.difference is None
    assert apart.standing == "apart"
    assert "Lebesgue" in apart.apart
    assert "counting" in apart.apart


def test_a_mixed_measure_of_other_columns_stands_apart():
    names = ("age", "smokes")
    one, other = (Measure.of(names, reading) for reading in ((True, False), (False, True)))
    entries = [Entry("a", exact(ROWS, measure=one)), Entry("b", exact(ROWS - 1, measure=one))]
    board = Leaderboard([Entry("c", exact(ROWS + 5, measure=other)), *entries])
    assert [e.name for e in board.ranked] == ["a", "b"]
    assert "column 'age' is a density in one and a probability in the other" in board["c"].apart
    figures = json.loads(json.dumps(board.to_dict()))
    assert (figures["measure"], figures["densities"]) == ("mixed", ["age"])
    assert [(e["measure"], e["densities"]) for e in figures["entries"]] == [
        ("mixed", ["age"]),
        ("mixed", ["age"]),
        ("mixed", ["smokes"]),
    ]
    for backend in ("polars", "pandas"):
        assert board.to_frame(backend)["densities"].to_list()[2] == ["smokes"]


def test_what_a_model_is_sure_of_leaves_room_for_its_monte_carlo_error():
    """A bound that happens to lie high by a tenth, its error two tenths, is sure of less than a known value."""
    noise = np.array([[-0.4, 0.4, 0.4, -0.4]])
    error = noise.std(ddof=1) / 2
    lucky = bound(ROWS + 0.1, replicates=ROWS[:, None] + 0.1 + noise)
    board = Leaderboard([Entry("lucky", lucky), Entry("known", exact(ROWS))])
    assert [e.name for e in board.ranked] == ["known", "lucky"]
    assert board["lucky"].lower == pytest.approx(np.mean(ROWS) + 0.1 - 1.959964 * error, abs=1e-6)
    assert board["known"].lower == np.mean(ROWS)
    assert board["lucky"].standing == "tied"


def test_the_datas_own_measure_beats_the_majority():
    schema = Schema.binary(1)
    data = Dataset(ROWS[:, None], ROWS[:, None], ROWS[:, None], schema, "mine")
    entries = [Entry(f"density {i}", exact(ROWS, measure="lebesgue")) for i in range(3)]
    board = Leaderboard([*entries, Entry("mass", exact(ROWS))], data)
    assert [e.name for e in board.ranked] == ["mass"]
    board = Leaderboard(entries, data)  # nobody has it: then the majority's
    assert len(board.ranked) == 3


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (Entry("failed", failure="it could not be fitted: too few rows"), "too few rows"),
        (Entry("none", Evidence.unavailable(5, "an implicit model has no density")), "implicit model"),
        (Entry("upper", Evidence.upper_bound(ROWS, method="by hand")), "without a lower limit"),
        (Entry("loose", estimate(ROWS, -np.inf)), "without a lower limit"),
        (Entry("zero", exact([-1.0, -np.inf, -1.0, -1.0, -1.0])), "probability 0 to 1 of 5 rows"),
        (Entry("fewer", exact(ROWS[:3])), "other rows"),
        (Entry("others", exact(ROWS, fingerprint="other")), "other rows"),
    ],
)
def test_reasons_to_stand_apart(entry, reason):
    board = Leaderboard([Entry("a", exact(ROWS)), Entry("b", exact(ROWS - 1)), entry])
    assert [e.name for e in board.ranked] == ["a", "b"]
    assert reason in board[entry.name].apart
    assert reason in str(board).replace("\n  ", " ")


def test_nothing_to_rank():
    board = Leaderboard([Entry("failed", failure="it could not be fitted: no")])
    assert board.best is None
    assert "No model could be ranked" in str(board)
    assert board.to_dict()["entries"][0]["apart"] == "it could not be fitted: no"


def test_to_dict_is_json_without_infinities():
    board = Leaderboard([Entry("a", exact(ROWS)), Entry("b", bound(ROWS - 1)), Entry("c", failure="no")])
    back = json.loads(json.dumps(board.to_dict(), allow_nan=False))
    assert [e["name"] for e in back["entries"]] == ["a", "b", "c"]
    first, second, third = back["entries"]
    assert first["rank"] == 1
    assert first["kind"] == "exact"
    assert second["difference_high"] is None
    assert second["difference"] == pytest.approx(-1)
    assert third["mean"] is None


def test_text_says_what_its_signs_mean_and_fits_the_terminal():
    board = Leaderboard(
        [
            Entry("exact", exact(ROWS), fit_seconds=0.5, n_parameters=12345),
            Entry("bound", bound(ROWS - 1)),
            Entry("estimate", estimate(ROWS - 2, ROWS - 3, ROWS)),
            Entry("a model with quite a long name that goes on and on", exact(ROWS - 9)),
        ]
    )
    text = str(board)
    for sign in ("=", "≥", "≈", "±", "~", "?"):
        assert sign in text
    assert "12,345" in text
    assert max(map(len, text.splitlines())) <= 100


def test_narrow_terminals_lose_columns_not_figures():
    from io import StringIO

    from rich.console import Console

    from likely.leaderboard.rendering import as_rich

    board = Leaderboard([Entry("a", exact(ROWS)), Entry("b", exact(ROWS - 1 + NUDGES))])
    console = Console(file=StringIO(), width=60)
    console.print(as_rich(board, 60))
    text = console.file.getvalue()
    assert "params" not in text
    assert "= −3.00 ± 0.08" in text
    assert "[−1.01, −0.99]" in text


def test_html_escapes_names():
    html = Leaderboard([Entry("<script>alert(1)</script>", exact(ROWS))])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_entries_by_name_and_place():
    board = Leaderboard([Entry("a", exact(ROWS)), Entry("b", exact(ROWS - 1))])
    assert board["b"] is board[1]
    with pytest.raises(KeyError, match="no model 'c'"):
        board["c"]
    assert "2 ranked" in repr(board)
