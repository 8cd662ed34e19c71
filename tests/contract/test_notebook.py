"""What a notebook shows: true to the object, escaped throughout, and without computing anything of the rows."""

import xml.etree.ElementTree as ET

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import likely
from likely.contract import notebook
from likely.leaderboard import Entry, Leaderboard

EVIL = '<img src=x onerror="alert(1)">'
ROWS = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])


def tree(html):
    """The HTML read as XML, which an unescaped `<` or `"` would break; escaped text comes back as it was."""
    return ET.fromstring(f"<div>{html}</div>")


def text_of(html):
    return " ".join(" ".join(tree(html).itertext()).split())


def tags(html):
    return {element.tag.rpartition("}")[2] for element in tree(html).iter()}


def cells(html):
    return [["".join(cell.itertext()) for cell in row] for row in tree(html).iter("tr")]


@pytest.fixture(scope="module")
def mixture():
    return likely.Mixture(2, random_state=7).fit(ROWS)


def evil_frame():
    return pl.DataFrame({EVIL: ["<b>", "&", "<b>", "&"] * 5, "size": [1.5, 2.5, 1.25, -0.5] * 5})


# ------------------------------------------------------------------- estimators
def test_an_estimator_shows_the_settings_that_were_changed():
    shown = text_of(likely.Mixture(3, tol=1e-4)._repr_html_())
    assert "Mixture , not fitted" in shown
    assert "n_components 3" in shown
    assert "tol 0.0001" in shown
    assert "max_iter" not in shown


def test_an_estimator_at_its_defaults_says_so():
    assert "all settings at their defaults" in text_of(likely.RBM()._repr_html_())
    assert "all settings" in text_of(likely.Mixture(n_components=None)._repr_html_())


@pytest.mark.parametrize("value", [np.array([1.0, 2.0]), (7,), [500], None, "x", 1, True, np.float64(2.0)])
def test_any_value_of_a_setting_can_be_shown(value):
    model = likely.VAE()
    model.hidden = value
    assert "setting value hidden" in text_of(model._repr_html_())


def test_values_equal_to_the_default_are_not_shown():
    model = likely.VAE()
    model.hidden = (*model.hidden,)  # equal, and another object
    model.random_state = None
    assert "all settings" in text_of(model._repr_html_())


def test_a_fitted_estimator_shows_what_it_learned(mixture):
    shown = text_of(mixture._repr_html_())
    assert "Mixture , fitted" in shown
    assert "columns 2 binary" in shown
    assert f"parameters {mixture.n_parameters_}" in shown
    assert f"objective {mixture.history_['objective'][-1]:.5g}, the last of" in shown
    assert "evidence of each row" in shown
    assert "seed 7" in shown


def test_a_model_without_a_likelihood_gives_the_reason():
    model = likely.Autoencoder(1, hidden=(), n_epochs=1, random_state=0).fit(ROWS)
    assert f"unavailable: {' '.join(model._no_evidence.split())}" in text_of(model._repr_html_())


def test_a_model_of_text_shows_its_vocabulary():
    model = likely.NGram(2).fit(["a b a", f"b {EVIL}"])
    assert f"vocabulary {len(model.vocabulary_)} tokens" in text_of(model._repr_html_())
    assert "evidence of each row" in text_of(model._repr_html_())
    backoff = likely.NGram(2, "stupid_backoff").fit(["a b a"])
    assert "evidence unavailable: " in text_of(backoff._repr_html_())


def test_a_predictor_shows_its_target():
    labels = np.array(["<i>", "b"] * 3)
    model = likely.JointPredictor(likely.Mixture(2), random_state=0).fit(ROWS, labels)
    shown = text_of(model._repr_html_())
    assert "target y: 2 classes" in shown
    assert "evidence of y given each row" in shown
    html = model.condition(ROWS)._repr_html_()
    assert cells(html)[0] == ["row", "y"]
    assert len(cells(html)) == 1 + len(ROWS)


def test_showing_computes_nothing(mixture, monkeypatch):
    for hook in ("_fit", "_evidence", "_sample", "_condition", "_encode"):
        monkeypatch.setattr(likely.Mixture, hook, None)
    assert mixture._repr_html_()
    assert mixture._repr_mimebundle_()["text/html"] == mixture._repr_html_()


def test_scikit_learns_choice_of_display_is_kept(mixture):
    with config_context(display="text"):
        assert not hasattr(mixture, "_repr_html_")
        assert set(mixture._repr_mimebundle_()) == {"text/plain"}


def test_a_pipeline_still_shows_its_steps():
    shown = make_pipeline(StandardScaler(), likely.FactorAnalysis(1))._repr_html_()
    assert "FactorAnalysis" in shown


def test_settings_of_an_estimator_are_escaped():
    model = likely.Mixture(random_state=None)
    model.covariance = EVIL
    assert EVIL in text_of(model._repr_html_())
    assert "img" not in tags(model._repr_html_())


# --------------------------------------------------------------------- evidence
@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        (likely.Evidence.exact([-1.0, -2.0], method="by hand"), "= -1.500 ± 0.500 kind exact"),
        (likely.Evidence.lower_bound([-1.0, -2.0], method="by hand"), "≥ -1.500 ± 0.500 kind a lower bound"),
        (likely.Evidence.upper_bound([-1.0, -2.0], method="by hand"), "≤ -1.500 ± 0.500 kind an upper bound"),
        (likely.Evidence.estimate([-1.0, -2.0], [-2.0, -3.0], [0.0, -1.0], method="by hand"), "-2.500 to -0.500"),
        (likely.Evidence.unavailable(2, "there is none"), "unavailable. there is none"),
    ],
)
def test_an_evidence_shows_its_kind(evidence, said):
    assert said in text_of(evidence._repr_html_())


def test_an_evidence_shows_its_monte_carlo_error():
    replicates = np.array([[-1.0, -1.2], [-2.0, -2.2]])
    evidence = likely.Evidence.lower_bound(replicates.mean(axis=1), replicates, method="sampled")
    assert f"Monte Carlo ± {evidence.monte_carlo_stderr:.3f}" in text_of(evidence._repr_html_())


def test_what_an_evidence_says_is_escaped():
    for evidence in (likely.Evidence.exact([0.0], method=EVIL), likely.Evidence.unavailable(1, EVIL)):
        assert EVIL in text_of(evidence._repr_html_())
        assert "img" not in tags(evidence._repr_html_())


def test_the_picture_counts_the_rows():
    values = np.concatenate([np.zeros(30), np.full(10, 1.0)])
    bars = [element for element in tree(notebook.histogram(values)).iter() if element.tag.endswith("rect")]
    heights = [float(bar.get("height")) for bar in bars]
    assert len(heights) == 2
    assert heights[0] == pytest.approx(3 * heights[1])


@pytest.mark.parametrize("values", [[], [-1.0], [-1.0, -1.0], [-np.inf, -1.0], [np.nan, np.nan]])
def test_values_without_a_spread_have_no_picture(values):
    assert notebook.histogram(np.array(values, dtype=float)) == ""


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
def test_an_evidence_becomes_a_frame(backend):
    replicates = np.array([[-1.0, -1.2], [-2.0, -2.2], [-3.0, -3.0]])
    evidence = likely.Evidence.lower_bound(replicates.mean(axis=1), replicates, method="sampled")
    frame = nw.from_native(evidence.to_frame(backend))
    assert frame.implementation.name.lower() == backend
    assert frame["row"].to_list() == [0, 1, 2]
    for name, array in (("value", evidence.values), ("lower", evidence.lower), ("stderr", evidence.stderr)):
        np.testing.assert_array_equal(frame[name].to_numpy(), array)
    assert np.isposinf(frame["upper"].to_numpy()).all()
    assert frame["dimensions"].to_list() == evidence.dimensions.tolist()
    assert set(frame["kind"].to_list()) == {"lower"}
    assert set(frame["method"].to_list()) == {"sampled"}


def test_a_frame_is_of_polars_unless_asked_otherwise():
    assert isinstance(likely.Evidence.exact([0.0], method="by hand").to_frame(), pl.DataFrame)
    with pytest.raises(ValueError, match="`backend` must be one of 'polars', 'pandas', 'pyarrow', got 'excel'"):
        likely.Evidence.exact([0.0], method="by hand").to_frame("excel")


# ------------------------------------------------------------------ conditional
def test_a_conditional_shows_the_cells_that_were_filled(mixture):
    rows = np.array([[0.0, 1.0], [1.0, np.nan], [np.nan, np.nan]])
    conditional = mixture.condition(rows)
    shown = cells(conditional._repr_html_())
    assert shown[0] == ["row", "x0", "x1"]
    assert [row[0] for row in shown[1:]] == ["1", "2"]
    assert shown[1][1] == "1"  # observed: no deviation
    mean, std = conditional.mean(), conditional.std()
    assert shown[1][2] == f"{mean[1, 1]:.4g} ± {std[1, 1]:.2g}"
    assert "3 unobserved cells in 2 of 3 rows and 2 of 2 columns" in text_of(conditional._repr_html_())


def test_filled_cells_are_marked(mixture):
    html = mixture.condition(np.array([[1.0, np.nan]]))._repr_html_()
    (row,) = list(tree(html).iter("tr"))[1:]
    assert [cell.get("style") is not None for cell in row.findall("td")] == [True]


def test_a_conditional_without_holes_says_so(mixture):
    html = mixture.condition(ROWS)._repr_html_()
    assert "0 unobserved cells in 0 of 6 rows" in text_of(html)
    assert "table" not in tags(html)


def test_a_large_conditional_is_cut():
    holes = np.full((40, 30), np.nan)
    html = notebook.show_conditional(holes, np.zeros((40, 30)), np.ones((40, 30)), [f"x{i}" for i in range(30)])
    assert len(cells(html)) == 1 + 8
    assert "and 32 more rows and 18 more columns" in text_of(html)


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_names_and_cells_of_the_user_are_escaped(library):
    frame = evil_frame() if library == "polars" else pd.DataFrame(evil_frame().to_dict(as_series=False))
    model = likely.Independent(random_state=0).fit(frame)
    holes = pl.DataFrame({EVIL: [None, "<b>"], "size": [1.0, None]}, schema={EVIL: pl.String, "size": pl.Float64})
    holes = holes if library == "polars" else pd.DataFrame({EVIL: [None, "<b>"], "size": [1.0, np.nan]})
    html = model.condition(holes)._repr_html_()
    assert EVIL in cells(html)[0]
    assert cells(html)[1][1] in ("<b>", "&")
    assert "img" not in tags(html)
    assert not [e for e in tree(html).iter("b") if e.text != "Conditional"]
    assert "img" not in tags(model._repr_html_())


# ------------------------------------------------------------------ leaderboard
def test_a_leaderboard_shows_itself_and_becomes_a_frame():
    board = Leaderboard(
        [
            Entry("sure", likely.Evidence.exact([-2.0, -2.1], method="by hand")),
            Entry(EVIL, likely.Evidence.lower_bound([-3.0, -3.2], method="by hand")),
            Entry("none", failure="it failed"),
        ]
    )
    assert EVIL in text_of(board._repr_html_().replace("<br>", "<br/>"))
    assert "img" not in tags(board._repr_html_().replace("<br>", "<br/>"))
    for backend in ("polars", "pandas", "pyarrow"):
        frame = nw.from_native(board.to_frame(backend))
        assert frame["name"].to_list() == [entry.name for entry in board]
        assert frame["kind"].to_list() == ["exact", "lower", "unavailable"]
        assert frame["mean"].to_list()[:2] == [entry.mean for entry in board.ranked]
    assert board.to_frame()["mean"].to_list()[2] is None
    assert Leaderboard([]).to_frame().is_empty()
