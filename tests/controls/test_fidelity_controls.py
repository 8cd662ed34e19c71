"""Parts of `fidelity` that are wrong by a little, and the checks that notice."""

import numpy as np
import pytest

from likely.information.fidelity import copying, dependencies, impossible, marginals, telling_apart
from tests.information import test_fidelity as checks


def test_a_distance_without_its_half_is_caught(monkeypatch):
    monkeypatch.setattr(marginals, "distance", lambda p, q, in_order: float(np.abs(p - q).sum()))
    with pytest.raises(AssertionError):
        checks.test_distances_of_small_columns_are_exact()


def test_a_chance_that_forgets_the_sizes_is_caught(monkeypatch):
    monkeypatch.setattr(marginals, "chance_factor", lambda n_real, n_drawn: 1.0)
    with pytest.raises(AssertionError):
        checks.test_chance_is_what_two_sets_of_real_rows_differ_by(0)


def test_an_error_as_if_folds_were_independent_is_caught(monkeypatch):
    right = telling_apart.error_of
    monkeypatch.setattr(telling_apart, "error_of", lambda influence: right(influence) / np.sqrt(2))
    with pytest.raises(AssertionError):
        checks.test_error_of_the_area_covers_what_folds_share(0, monkeypatch)


def test_a_grid_that_takes_its_neighbourhood_is_caught(monkeypatch):
    monkeypatch.setattr(impossible, "on_grid", lambda cells, step: np.abs(cells / step - np.rint(cells / step)) < 0.51)
    with pytest.raises(AssertionError):
        checks.test_impossible_values_are_found_with_their_exact_shares(checks.people(np.random.default_rng(0)), 0)


def test_a_constant_column_that_everything_determines_is_caught(monkeypatch):
    monkeypatch.setattr(dependencies, "_EXCEPTIONS", 0.1)
    monkeypatch.setattr(dependencies, "_is_kept", lambda n_broken, n_by_chance, n_rows: n_broken <= 0.1 * n_rows)
    with pytest.raises(AssertionError):
        checks.test_dependencies_need_rows_that_could_break_them(0)


def test_rows_that_find_themselves_are_caught(monkeypatch):
    right = copying._nearest
    monkeypatch.setattr(copying, "_nearest", lambda asked, among, own=None: right(asked, among))
    rows = checks.read(*np.random.default_rng(0).normal(size=(2, 200, 2)))
    found = copying.copying(rows, rows, np.random.default_rng(0))
    with pytest.raises(AssertionError):
        checks.check_nearness(found)
