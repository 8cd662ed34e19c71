"""Fidelity: what is planted is found with its exact share, what is only chance is not called a difference."""

import json
import math
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: F401  # whose threads are limited
from sklearn.metrics import r2_score, roc_auc_score
from threadpoolctl import threadpool_limits

import likely
from likely.information.fidelity import impossible, scores, telling_apart
from likely.information.fidelity.copying import _towards, copying
from likely.information.fidelity.dependencies import broken_dependencies
from likely.information.fidelity.impossible import impossible_values
from likely.information.fidelity.marginals import CLEARLY, halves, marginals
from likely.information.fidelity.pairs import pairs
from likely.information.fidelity.usefulness import usefulness
from likely.information.mixed_rows import read_together

N = 500
N_PAIRS = 300  # of sets of one distribution, by which errors are judged
TITLES = np.array(["none", "school", "college", "doctor"])


def people(rng, n=N):
    """A table with everything in it: integers, cents, a spike, words, a code and its name, dates, holes."""
    grade = rng.choice(4, n, p=[0.2, 0.4, 0.3, 0.1])
    age = rng.integers(18, 70, n)
    gain = np.where(rng.random(n) < 0.85, 0.0, (100 * rng.exponential(50, n)).round() / 100)
    city = rng.choice(["Ayr", "Bath", "Cork"], n).astype(object)
    city[rng.random(n) < 0.1] = None
    return pl.DataFrame(
        {
            "age": age,
            "grade": grade + 1,
            "title": TITLES[grade],
            "gain": gain,
            "city": city.tolist(),
            "day": (np.datetime64("2024-01-01") + rng.integers(0, 200, n).astype("m8[D]")),
            "size": 150 + 0.3 * age + rng.normal(size=n),
            "rich": np.where(0.1 * (age - 40) + 2 * (grade - 1.3) + rng.normal(size=n) > 0, "yes", "no"),
        }
    )


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """As `fidelity` has it: threads of trees that wait for each other on a busy machine take forever."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def real():
    return people(np.random.default_rng(0))


def read(real, drawn, *more):
    return read_together({"real": real, "drawn": drawn} | {f"more{i}": rows for i, rows in enumerate(more)})


def test_rows_of_the_same_distribution_cannot_be_told(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    real, drawn, holdout = (people(rng, 400) for _ in range(3))
    found = likely.fidelity(real, drawn, holdout, target="rich", random_state=global_random_seed)
    assert abs(found.classifier.auc - 0.5) < 4.5 * found.classifier.stderr
    assert not any(column.differs for column in found.marginals)
    assert not found.copying.is_copying
    assert found.copying.copies == 0
    # Of eight columns at most gain and size, whose ends no set has seen, are out of range now and then.
    assert {(bad.column, bad.what.split()[-1]) for bad in found.impossible} <= {("gain", "range"), ("size", "range")}
    assert [(str(rule), rule.share) for rule in found.dependencies] == [("grade ↔ title", 0.0)]
    assert abs(found.usefulness.difference) < 4 * found.usefulness.difference_stderr
    assert found.usefulness.real > 0.7
    assert found.usefulness.on_holdout


def test_shuffled_columns_are_told_by_pairs(real, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    shuffled = real.select(pl.col(name).gather(rng.permutation(N)) for name in real.columns)
    found = likely.fidelity(real, shuffled, target="rich")
    assert found.classifier.tells
    assert found.classifier.auc > 0.9
    assert {name for name, _ in found.classifier.columns[:2]} <= {"grade", "title", "age", "size"}
    assert all(column.distance < 1e-12 for column in found.marginals)
    assert found.pairs[0].columns == ("grade", "title")
    assert {pair.columns for pair in found.pairs if pair.differs} >= {("grade", "title"), ("age", "size")}
    assert ("city", "day") not in {pair.columns for pair in found.pairs if pair.differs}
    assert found.impossible == ()
    broken = (shuffled["title"].to_numpy() != TITLES[shuffled["grade"].to_numpy() - 1]).mean()
    assert found.broken_rows == found.dependencies[0].share == broken
    assert found.usefulness.difference > 3 * found.usefulness.difference_stderr
    assert not found.usefulness.on_holdout


def test_training_rows_themselves_are_copies(real, global_random_seed):
    holdout = people(np.random.default_rng(global_random_seed + 1))
    rng = np.random.default_rng(global_random_seed)
    for more in ((), (holdout,)):
        rows = read(real, real, *more)
        found = copying(rows, rows, rng)
        assert found.is_copying
        assert found.is_nearer
        assert found.copies == 1
        assert found.copies_expected == 0
    assert found.to_training == 1  # among as many held-out rows
    # Copies with a little noise on one column are not equal to any row, and are near all the same.
    noisy = real.with_columns(size=pl.col("size") + 1e-3 * rng.normal(size=N))
    rows = read(real, noisy, holdout)
    found = copying(rows, rows, rng)
    assert found.copies == 0
    assert found.is_copying


def test_rows_that_are_too_much_alike_are_not_called_copies(global_random_seed):
    """Rows along the middle of the distribution are near to training rows, and as near to held-out ones."""
    rng = np.random.default_rng(global_random_seed)
    train, holdout = rng.normal(size=(2, 400, 1)) + 0.5 * rng.normal(size=(2, 400, 6))
    middle = np.repeat(rng.normal(size=(400, 1)), 6, axis=1)
    rows = read(train, middle, holdout)
    found = copying(rows, rows, rng)
    assert found.is_nearer
    assert not found.is_copying


def test_chance_of_being_nearer_to_training_rows_is_that_of_all_ways_to_call_rows_so(global_random_seed):
    """Against every way to call 5 of 10 rows real: the mean is one half, the deviation the one that is stated."""
    rng = np.random.default_rng(global_random_seed)
    pool, drawn = rng.normal(size=(10, 2)), rng.normal(size=(50, 2)) + [1.0, 0.0]
    shares, stated = [], []
    for chosen in combinations(range(10), 5):
        real, other = pool[list(chosen)], np.delete(pool, chosen, axis=0)
        share, deviation = _towards(drawn.astype(np.float32), real.astype(np.float32), other.astype(np.float32), rng)
        shares.append(share)
        stated.append(deviation - 0.5 / 52)  # and a little, so that it is never 0
    assert math.isclose(np.mean(shares), 0.5)
    np.testing.assert_allclose(stated, np.std(shares))


def check_nearness(found):
    """Of rows of the same distribution none is nearer, nor further."""
    assert abs(found.nearer - 0.5) < 4 * found.nearer_stderr


def test_new_rows_are_as_near_as_real_rows_are_to_each_other(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for sets in (rng.normal(size=(2, 400, 2)), rng.integers(5, size=(2, 400, 4)), rng.normal(size=(3, 400, 2)) ** 3):
        rows = read(*sets)
        check_nearness(copying(rows, rows, rng))


def test_repeated_rows_are_no_copies_where_real_rows_repeat(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    rows = read(*rng.integers(2, size=(2, 300, 4)))
    found = copying(rows, rows, rng)
    assert found.copies > 0.95
    assert found.copies_expected > 0.95
    assert not found.is_copying


def test_impossible_values_are_found_with_their_exact_shares(real, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    drawn = {name: real[name].to_list() for name in real.columns}
    drawn["gain"][:10] = [-5.25] * 10
    drawn["gain"][10:15] = [1.005] * 5
    drawn["age"][:50] = [30.5] * 50
    drawn["age"][50:54] = [17] * 4
    drawn["age"][54] = 70
    drawn["city"][:25] = ["Rome"] * 25
    drawn["grade"][:5] = [9] * 5
    drawn["title"][100] = None
    drawn["day"] = np.array(drawn["day"], "M8[us]")
    drawn["day"][:3] = drawn["day"][:3] + np.timedelta64(1, "h")
    values, is_broken, expected = impossible_values(read(real, pl.DataFrame(drawn, strict=False)), rng)
    assert {(bad.column, bad.what): bad.share * N for bad in values} == {
        ("gain", "negative"): 10,
        ("gain", "off the grid"): 5,
        ("age", "fraction"): 50,
        ("age", "below the range"): 4,
        ("age", "above the range"): 1,
        ("city", "unseen"): 25,
        ("grade", "above the range"): 5,
        ("title", "unobserved"): 1,
        ("day", "off the grid"): 3,
    }
    admitted = {(bad.column, bad.what): bad.admitted for bad in values}
    assert admitted["gain", "off the grid"] == "steps of 0.01"
    assert admitted["day", "off the grid"] == "steps of 1 day"
    assert admitted["age", "below the range"] == f"at least {real['age'].min()}"
    assert is_broken.sum() == 55 + 1
    assert expected < 0.05


def test_values_between_those_of_a_scale_are_unseen():
    scale = np.array([1.0, 2.0, 5.0] * 40)[:, None]
    values, _, _ = impossible_values(read(scale, np.array([[3.0], [5.0], [0.0], [2.5]])), np.random.default_rng(0))
    assert {bad.what: bad.share for bad in values} == {"unseen": 0.25, "below the range": 0.25, "fraction": 0.25}


def test_values_that_rows_have_alone_are_no_scale():
    """Zeros and a few amounts: another amount within their range is possible."""
    gains = np.concatenate([np.zeros(90), 10.0 * np.arange(1, 11)])[:, None]
    values, _, _ = impossible_values(read(gains, np.full((4, 1), 50.0) - 15.0), np.random.default_rng(0))
    assert [bad.what for bad in values] == ["off the grid"]
    assert (
        impossible_values(read(np.delete(gains, 93, axis=0), np.full((4, 1), 40.0)), np.random.default_rng(0))[0] == ()
    )


def test_new_real_rows_leave_the_range_as_often_as_expected(global_random_seed):
    """A new row is the least or the greatest of n + 1 with probability 2 / (n + 1); without holdout, of 9n/10 + 1."""
    rng = np.random.default_rng(global_random_seed)
    n = 200
    _, _, expected = impossible_values(read(*rng.normal(size=(2, n, 1))), rng)
    rate = 2 / (0.9 * n + 1)
    assert abs(expected - rate) < 5 * math.sqrt(rate / n)
    holdout = np.concatenate([np.full((5, 1), 99.0), np.zeros((95, 1))])
    assert impossible_values(read(*rng.normal(size=(2, n, 1)), holdout), rng)[2] == 0.05


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([1, 5, 7], 1), ([10, 250, 40], 10), ([0.5, 3, -1.5], 0.5), ([0.1, 0.25], 0.05), ([1e-6, 3e-6], 1e-6),
        ([0.1, 0.2, 1 / 3], None), ([0.0, 0.0], None), ([1e300, 1.0], None), ([-122.23, 37.88], 0.01),
    ],
)  # fmt: skip
def test_grid_of_numbers(values, step):
    found = impossible.grid_step(np.array(values, float), 6)
    assert found == step or math.isclose(found, step, rel_tol=1e-12)


def test_grid_of_single_precision_is_that_of_its_decimals():
    cents = np.arange(1, 5000) / 100
    assert math.isclose(impossible.grid_step(cents.astype(np.float32).astype(float), 6), 0.01)
    assert impossible.on_grid(cents.astype(np.float32).astype(float), 0.01).all()
    assert not impossible.on_grid(cents + 1e-6, 0.01).any()
    rng = np.random.default_rng(0)
    assert impossible.grid_step(1000 * rng.random(500).astype(np.float32).astype(float), 6) is None


def test_dependencies_need_rows_that_could_break_them(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    code = rng.integers(0, 6, 300)
    table = np.stack([code, code // 2, np.arange(300) == 7, rng.integers(0, 3, 300)], axis=1).astype(float)
    drawn = table.copy()
    drawn[:30, 1] = (drawn[:30, 1] + 1) % 3
    drawn[30:60, 1] = np.nan  # what is not observed breaks nothing
    found, is_broken = broken_dependencies(read(table, drawn), rng)
    assert [(rule.columns, rule.both_ways, rule.share, rule.expected) for rule in found] == [
        (("x0", "x1"), False, 0.1, 0.0)
    ]
    assert is_broken.tolist() == [True] * 30 + [False] * 270
    assert found[0].example == f"x0 = {drawn[0, 0]:g}, x1 = {drawn[0, 1]:g}"


def test_distances_of_small_columns_are_exact():
    real = np.array([[0.0], [0.0], [1.0], [np.nan]] * 10)
    drawn = np.array([[0.0], [1.0], [1.0], [2.0], [np.nan]] * 10)
    (column,) = marginals(read(real, drawn), halves(40, np.random.default_rng(0)))
    # p = (.5, .25, 0, .25), q = (.2, .4, .2, .2) over 0, 1, 2 and unobserved
    assert math.isclose(column.distance, (0.3 + 0.15 + 0.2 + 0.05) / 2)
    assert column.measure == "total variation"
    many = np.arange(100.0)[:, None]
    (column,) = marginals(read(many, many + 25), halves(100, np.random.default_rng(0)))
    assert (column.measure, round(column.distance, 12)) == ("Kolmogorov-Smirnov", 0.25)


def test_dependence_of_pairs_is_exact():
    real = np.array([[0, 0], [1, 1]] * 50, float)
    drawn = np.array([[0, 1], [1, 0]] * 50, float)  # as strong, with the other sign
    (pair,) = pairs(read(real, drawn), halves(100, np.random.default_rng(0)))
    assert (pair.real, pair.drawn, pair.difference) == (0.5, 0.5, 1.0)
    assert pair.differs


def test_chance_is_what_two_sets_of_real_rows_differ_by(global_random_seed):
    """Of 40 independent columns the mean distance is the mean of what is expected, within its error over columns."""
    rng = np.random.default_rng(global_random_seed)
    real, drawn = rng.normal(size=(300, 40)), rng.normal(size=(150, 40))
    real[:, ::2], drawn[:, ::2] = real[:, ::2] > 0.5, drawn[:, ::2] > 0.5
    found = marginals(read(real, drawn), halves(300, rng))
    for kind in ("total variation", "Kolmogorov-Smirnov"):
        gaps = np.array([one.distance - one.expected for one in found if one.measure == kind])
        assert abs(gaps.mean()) < 4 * gaps.std(ddof=1) / math.sqrt(len(gaps))
    assert sum(one.differs for one in found) <= 1
    assert CLEARLY == 4


def test_scores_are_scikit_learns_and_their_errors_those_of_resampling(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    n = 400
    truth = rng.normal(size=n)
    said = truth + rng.normal(size=n)
    labels, rounded = truth > 0, said.round(1)
    area, explained = scores.area_under_curve(labels, rounded), scores.variance_explained(truth, said)
    assert math.isclose(area.value, roc_auc_score(labels, rounded))
    assert math.isclose(explained.value, r2_score(truth, said))
    draws = rng.integers(n, size=(300, n))
    for score, again in (
        (area, [scores.area_under_curve(labels[d], rounded[d]).value for d in draws]),
        (explained, [r2_score(truth[d], said[d]) for d in draws]),
        (scores.accuracy(labels, said > 0), [(labels[d] == (said[d] > 0)).mean() for d in draws]),
    ):
        assert 1 / 1.3 < np.std(again) / score.stderr < 1.3  # a deviation from 300 draws is within 21% at five errors


def test_error_of_the_area_covers_what_folds_share(global_random_seed, monkeypatch):
    """Over pairs of sets of one distribution a linear score's area spreads as its error says."""
    monkeypatch.setattr(telling_apart, "boosted_trees", lambda *_: MeansApart())
    monkeypatch.setattr(telling_apart, "_drops", lambda trees, cells, *_: np.zeros(cells.shape[1]))
    found = []
    for seed in range(N_PAIRS):
        rng = np.random.default_rng([global_random_seed, seed])
        found.append(telling_apart.tell_apart(read(*rng.normal(size=(2, 150, 8))), rng, 0))
    scaled = np.array([(one.auc - 0.5) / one.stderr for one in found])
    assert abs(scaled.std() - 1) < 5 / math.sqrt(2 * len(found))
    assert abs(scaled.mean()) < 5 / math.sqrt(len(found))


class MeansApart:
    """A linear score: along the line between the means of the two sets."""

    def fit(self, cells, labels):
        self.direction = cells[labels].mean(axis=0) - cells[~labels].mean(axis=0)
        return self

    def predict_proba(self, cells):
        return np.stack([-cells @ self.direction, cells @ self.direction], axis=1)


def test_targets_of_every_kind(real):
    drawn = people(np.random.default_rng(5))
    for target, measure in (("title", "accuracy"), ("size", "R²"), (1, "accuracy"), ("rich", "AUC")):
        rng = np.random.default_rng(0)
        place = real.columns.index(target) if isinstance(target, str) else target
        found = usefulness(read(real, drawn), place, rng, 0)
        assert found.measure == measure
        assert 0 < found.drawn_stderr < 0.2 or found.drawn == 1
    one = drawn.with_columns(rich=pl.lit("no"))
    assert usefulness(read(real, one), real.columns.index("rich"), np.random.default_rng(0), 0).drawn == 0.5


def test_the_result_shows_itself(real):
    drawn = people(np.random.default_rng(1)).with_columns(title=pl.lit("<b>"))
    found = likely.fidelity(real.to_pandas(), drawn.to_pandas(), target="rich")
    assert isinstance(found, likely.Fidelity)
    line = str(found)
    assert "\n" not in line
    assert "(0.5 = cannot tell, by title" in line
    assert "break a dependency" in line
    assert "impossible values in 100.00% of rows" in line
    page = found._repr_html_()
    assert "<b>'" not in page
    assert "&lt;b&gt;" in page
    frame = found.to_frame()
    assert set(frame["part"]) == {"classifier", "column", "pair", "impossible", "dependency", "copying", "prediction"}
    assert frame.filter(part="column").height == 8
    assert isinstance(found.to_frame("pandas"), pd.DataFrame)
    whole = json.loads(json.dumps(found.to_dict()))
    assert whole["marginals"][2]["differs"] is True
    assert whole["classifier"]["tells"] is True


def test_the_same_seed_gives_the_same_figures(real):
    drawn = people(np.random.default_rng(1), 60)
    assert likely.fidelity(real, drawn, random_state=3) == likely.fidelity(real, drawn, random_state=3)


def test_large_sets_are_subsampled_and_this_is_said(monkeypatch):
    import sys

    monkeypatch.setattr(sys.modules["likely.information.fidelity.fidelity"], "MOST_ROWS", 80)
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(300, 2))
    drawn[::100] = 50
    found = likely.fidelity(rng.normal(size=(200, 2)), drawn)
    assert (found.n_real, found.n_drawn, found.n_compared) == (200, 300, 80)
    assert found.impossible_rows >= 3 / 300  # looked for in all


def test_bad_input_is_refused(real):
    with pytest.raises(ValueError, match=r"no column 'rish' to predict. Did you mean 'rich'\?"):
        likely.fidelity(real, real, target="rish")
    with pytest.raises(ValueError, match="the drawn rows are 5, too few to compare: give at least 30"):
        likely.fidelity(real, real[:5])
    with pytest.raises(ValueError, match="the drawn rows have no column 'rich'"):
        likely.fidelity(real, real.drop("rich"))
    with pytest.raises(ValueError, match="has one value in all real rows"):
        likely.fidelity(*([real.with_columns(rich=pl.lit("no"))] * 2), target="rich")
    with pytest.raises(ValueError, match="too few to learn from"):
        likely.fidelity(real, real.with_columns(rich=pl.lit(None, pl.String)), target="rich")


def test_the_last_digit_of_many_is_no_grid(global_random_seed):
    """Numbers written with three decimals that hardly repeat may be drawn with more; cents may not."""
    rng = np.random.default_rng(global_random_seed)
    real = pl.DataFrame({"size": rng.normal(170, 9, N).round(3), "price": rng.lognormal(2, 1, N).round(2)})
    drawn = real.with_columns(pl.col("size") + 1e-5, pl.col("price") + 1e-5)
    rows = read_together({"the real rows": real, "the drawn rows": drawn})
    found, _, _ = impossible_values(rows, rng)
    assert {(one.column, one.what) for one in found if "grid" in one.what} == {("price", "off the grid")}
