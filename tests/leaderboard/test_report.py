"""The report: complete, self-contained, and safe whatever names it is given."""

from __future__ import annotations

import base64
import re
from datetime import date
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import likely
from likely.contract.evidence import Evidence
from likely.information.dependence import most_dependent_pairs, mutual_information
from likely.leaderboard import Entry, Leaderboard
from likely.leaderboard.report import probes, row_sections
from likely.leaderboard.report.charts import drawing
from likely.leaderboard.report.imputation_section import SIMPLE, _remark
from likely.leaderboard.report.png import contact_sheet
from likely.leaderboard.report.report import report
from likely.leaderboard.report.table_sections import _instant
from likely.schema import Column, Schema
from likely.schema.column import RESOLUTIONS

NASTY = "<script>alert('x')</script> & \"quoted\""
VOID = {"meta", "img", "br", "path", "use", "rect", "image"}


class Checker(HTMLParser):
    """Finds what a self-contained page may not have, and tags that do not close."""

    def __init__(self):
        super().__init__()
        self.open, self.titles, self.sources, self.text = [], [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert tag not in {"script", "link", "iframe", "object", "embed"}
        assert not any(name.startswith("on") for name in attributes)
        self.titles.append(attributes.get("title", ""))
        self.sources += [attributes[key] for key in ("src", "href", "xlink:href") if key in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def check(html):
    assert "http:" not in html
    assert "https:" not in html
    assert "@import" not in html
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in checker.sources)
    for image in re.findall(r"data:image/png;base64,([A-Za-z0-9+/=\s]+)", html):
        assert base64.b64decode(image).startswith(b"\x89PNG")
    return checker


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.RandomState(0)
    shapes = np.repeat((rng.random_sample((4, 16)) < 0.5).astype(float), 30, axis=0)
    rows = np.where(rng.random_sample(shapes.shape) < 0.05, 1 - shapes, shapes)[rng.permutation(120)]
    parts = rows[:80], rows[80:100], rows[100:]
    return likely.datasets.Dataset(*parts, Schema.binary(16, (4, 4)), "shapes")


@pytest.fixture(scope="module")
def picture_report(pictures):
    models = [likely.Independent(), likely.Mixture(4, n_init=1), likely.FactorAnalysis(2)]
    return report(likely.compare(models, pictures))


def test_pictures(picture_report):
    checker = check(picture_report)
    text = " ".join(checker.text)
    for heading in (
        "Leaderboard",
        "Evidence",
        "row by row",
        "Learning curves",
        "Samples",
        "Reconstructions",
        "Imputations",
    ):
        assert heading in text
    for name in ("Independent", "Mixture", "FactorAnalysis", "apart", "Lebesgue"):
        assert name in text
    assert any("the other cells say nothing" in title for title in checker.titles)  # why Independent has no denoise
    assert len([s for s in checker.sources if s.startswith("data:")]) >= 4 + 4 + 5
    assert "prefers-color-scheme:dark" in picture_report
    assert "var(--c0)" in picture_report


def test_values_appear_under_the_pointer(picture_report):
    titles = re.findall(r"<g><title>(.*?)</title>", picture_report)
    assert sum(", 95% interval " in title for title in titles) == 3  # a mark for each model
    bars = [re.match(r"Mixture: (\d+) rows from", title) for title in titles]
    assert sum(int(bar[1]) for bar in bars if bar) == 20  # all test rows are in some bar
    assert any(re.match(r"Mixture, \w+ \d+: ", title) for title in titles)
    assert "hover:" not in picture_report


def test_the_same_comparison_gives_the_same_report(pictures):
    models = [likely.Independent(), likely.Mixture(2, n_init=1)]
    first, second = (report(likely.compare(models, pictures)) for _ in range(2))
    seconds = re.compile(r"[\d.]+ (s|min)(?=<)")
    assert seconds.sub("", first) == seconds.sub("", second)


def test_tables_with_holes_and_odd_names(tmp_path):
    rng = np.random.RandomState(0)
    n = 150
    frame = pd.DataFrame(
        {
            NASTY: rng.choice(["<b>", "&amp;", None], n),
            "size $x_1$": rng.standard_normal(n),
            "number": rng.poisson(3, n),
            "flag": rng.random_sample(n) < 0.5,
        }
    )
    frame.loc[::7, "size $x_1$"] = np.nan
    models = {NASTY: likely.Independent(), "mixture": likely.Mixture(2, n_init=1), "no": likely.FactorAnalysis(1)}
    board = likely.compare(models, frame, report=tmp_path / "r.html")
    html = (tmp_path / "r.html").read_text()
    checker = check(html)
    assert "<script>" not in html
    assert "<b>" not in html
    text = " ".join(checker.text)
    for part in (NASTY, "Marginals", "Pairs of columns", "Imputation", "mean or mode", "is categorical"):
        assert part in text
    assert board.best is not None


@pytest.mark.parametrize("name", ["$\\frac{$", "a_$x^2_{$", "cost $ and $", "日本"])
def test_names_are_no_formulas_and_of_any_script(name):
    with drawing(1.0, "names") as picture:
        axes = picture.figure.subplots()
        axes.set_title(name)
        axes.set_xlabel(name)
    assert picture.svg.count(name) == 2


def test_nothing_but_failures_still_reports():
    check(report(Leaderboard([Entry("a", failure="no"), Entry("b", failure="no <either>")])))


def test_evidence_by_hand_without_data_reports():
    rows = np.linspace(-3, -2, 20)
    entries = [
        Entry("exact", Evidence.exact(rows, method="by <hand>")),
        Entry("bound", Evidence.lower_bound(rows - 1, method="by hand")),
        Entry("estimate", Evidence.estimate(rows - 2, rows - 2.5, rows - 1, method="by hand")),
        Entry("constant", Evidence.exact(np.full(20, -9.0), method="by hand")),
    ]
    check(report(Leaderboard([Entry(e.name, e.evidence[:1]) for e in entries])))  # one row: no standard error
    text = " ".join(check(report(Leaderboard(entries))).text)
    assert "by <hand>" in text
    assert "Samples" not in text


def test_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    board = Leaderboard([Entry("a", Evidence.exact([-1.0, -2.0], method="by hand"))])
    path = tmp_path / "r.html"
    path.write_text("old")

    def fail(board):
        raise RuntimeError("drawing failed")

    monkeypatch.setattr("likely.leaderboard.report.report.report", fail)
    with pytest.raises(RuntimeError):
        board.to_report(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


# ---------------------------------------------------------------------- probes
MIXED = Schema(
    (Column("b", "binary"), Column("c", "categorical", ("x", "y", "z")), Column("n", "count"), Column("r", "real"))
)


def test_scores_against_hand_computed_ones():
    truth = np.array([[0, 2, 4, 1.0], [1, 1, 2, 3.0]])
    guess = np.array([[0.2, 1, 4, 1.0], [1, 1, 4, 5.0]])
    cells = np.ones((2, 4), bool)
    scale = np.array([1, 1, 2.0, 4.0])
    scores = probes.scores(truth, guess, cells, MIXED, scale)
    assert scores.accuracy == pytest.approx(3 / 4)
    assert scores.rmse == pytest.approx(np.sqrt((0 + 1 + 0 + 0.25) / 4))
    cells[:, 2:] = False
    assert np.isnan(probes.scores(truth, guess, cells, MIXED, scale).rmse)
    assert str(scores) == "75.0% right, error 0.56 sd"


def test_corruption_keeps_kinds_and_holes():
    rng = np.random.RandomState(0)
    rows = (
        np.column_stack([rng.randint(2, size=400), rng.randint(3, size=400), rng.poisson(2, 400), rng.randn(400)]) * 1.0
    )
    rows[0] = np.nan
    noisy = probes.corrupt(rows, MIXED, np.ones(4), 0)
    MIXED.encode(MIXED.decode(noisy))
    assert np.isnan(noisy[0]).all()
    changed = (noisy != rows)[1:].mean(axis=0)
    # A tenth of 399 binary cells is flipped: within four standard errors of it.
    assert abs(changed[0] - 0.1) < 4 * np.sqrt(0.1 * 0.9 / 399)
    assert changed[3] == 1


def test_hidden_cells_leave_something_to_see():
    rows = np.zeros((200, 5))
    rows[:, 0] = np.nan
    hidden = probes.random_cells(rows, 0)
    assert not hidden[:, 0].any()
    assert (~hidden & ~np.isnan(rows)).any(axis=1).all()
    # A fifth of 800 cells, within four standard errors; that one cell of a row is kept takes off 0.2⁴ / 4 of them.
    assert abs(hidden[:, 1:].mean() - (0.2 - 0.2**4 / 4)) < 4 * np.sqrt(0.2 * 0.8 / 800)


def test_base_line_is_mean_and_mode():
    rows = np.array([[0, 2, 1, 1.0], [1, 2, 3, np.nan], [1, 0, 2, 4.0]])
    assert probes.base_line(rows, MIXED) == pytest.approx([1, 2, 2, 2.5])


def test_lower_half():
    assert probes.lower_half((2, 2)).tolist() == [False, False, True, True]
    assert probes.lower_half((3, 1)).tolist() == [False, True, True]


def test_mutual_information_of_known_tables():
    a = np.repeat([0, 1], 500)
    # Copies share one bit; less Miller and Madow's correction (1 + 1 - 1) / 2n.
    assert mutual_information(a, a) == pytest.approx(np.log(2) + 1 / 2000)
    # Of independent columns all four cells are filled alike: nothing is shared, and the correction is (1 + 1 - 3) / 2n.
    assert mutual_information(a, np.tile([0, 1], 500)) == pytest.approx(-1 / 2000)
    assert mutual_information(np.array([-1, 0]), np.array([0, -1])) == 0


def test_most_dependent_pairs_finds_the_planted_ones(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    rows = (
        np.column_stack([rng.randint(2, size=500), rng.randint(3, size=500), rng.poisson(2, 500), rng.randn(500)]) * 1.0
    )
    rows[:, 3] += 3 * rows[:, 1]
    assert most_dependent_pairs(rows, MIXED, 1) == [(1, 3)]
    assert most_dependent_pairs(rows[:, :1], Schema((MIXED.columns[0],)), 3) == []


def test_contact_sheet_is_a_picture_of_the_rows():
    from io import BytesIO

    from matplotlib.image import imread

    rows = np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    image = imread(BytesIO(contact_sheet(Schema.binary(4, (2, 2)), rows)))
    assert image.shape[:2] == (8, 17)
    assert image[0, 0, :3].min() == 1
    assert image[0, 5, :3].max() < 0.25
    colour = contact_sheet(Schema.real(12, (2, 2, 3)), np.linspace(0, 1, 12)[None])
    assert colour.startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="no pictures"):
        contact_sheet(Schema.real(4), rows)


def test_gains_are_means_of_paired_differences_with_errors_by_rows():
    schema = likely.Schema((likely.Column("a", "real"), likely.Column("b", "real"), likely.Column("c", "binary")))
    rng = np.random.default_rng(0)
    truth = np.column_stack([rng.normal(size=(40, 2)), rng.integers(0, 2, 40)])
    guess, simple = truth + [0.5, 0.5, 0], np.where([True, True, False], truth + 1.0, 0.0)
    cells = np.ones_like(truth, bool)
    cells[:, 1] = rng.random(40) < 0.5
    scale = np.array([1.0, 2.0, 1.0])
    numeric, discrete = probes.gains(truth, guess, simple, cells, schema, scale)
    # (1 - 0.25) of the first column, a quarter of it of the second, which is twice as wide.
    n, m = 40, int(cells[:, 1].sum())
    expected = 0.75 * (n + m / 4) / (n + m)
    assert numeric.of == "numeric"
    np.testing.assert_allclose(numeric.mean, expected)
    by_row = (0.75 - expected) + cells[:, 1] * (0.1875 - expected)
    np.testing.assert_allclose(numeric.stderr, np.sqrt(np.sum(by_row**2)) / (n + m))
    np.testing.assert_allclose(discrete.mean, truth[:, 2].mean())
    assert numeric.is_clear
    none, _ = probes.gains(truth, simple, simple, cells, schema, scale)
    assert (none.mean, none.is_clear) == (0.0, False)
    assert probes.gains(truth, guess, simple, np.zeros_like(cells), schema, scale) == []


def test_odd_rows_have_the_numbers_that_they_have_in_the_file():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 2))
    split = likely.datasets.dataset.split_rows(120, name="rows")
    odd = int(split.test[3])
    rows[odd] = [9.0, -9.0]
    board = likely.compare([likely.Independent()], rows)
    page = row_sections.odd_rows_section(board)
    first = page[page.index("<tbody>") :]
    assert first.startswith(f"<tbody><tr><td class='n'>{odd + 1}</td>")
    assert "as they are in the file" in page
    some = likely.compare([likely.Independent()], rows, n_score_rows=8)
    assert set(some.dataset.row_numbers["test"]) <= set(split.test.tolist())
    np.testing.assert_array_equal(some.dataset.test, rows[some.dataset.row_numbers["test"]])


@pytest.mark.parametrize(
    ("resolution", "span", "text"),
    [("day", 400, "2021-03"), ("day", 20, "2021-03-01"), ("minute", 2000, "03-01 00:00")],
)
def test_times_on_an_axis_are_dates(resolution, span, text):
    day = (date(2021, 3, 1) - date(1970, 1, 1)).days
    tick = day * RESOLUTIONS["day"] / RESOLUTIONS[resolution]
    assert _instant(Column("t", "datetime", resolution=resolution), tick, span) == text


@pytest.mark.parametrize(("mean", "words"), [(0.1, "not clearly better"), (0.0, "no better")])
def test_a_remark_does_not_deny_a_gain_that_is_seen(mean, words):
    totals = {SIMPLE: probes.Scores(0.3, 1.0), "VAE": probes.Scores(0.5, 0.9)}
    assert f"filled in {words} by VAE" in _remark(probes.Gain("discrete", mean, 0.1), "VAE", totals)
