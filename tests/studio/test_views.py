"""What the views show is what the library says."""

from __future__ import annotations

import html
import io
import re

import numpy as np
import polars as pl
import pytest

import likely
from likely.leaderboard.wording import number
from likely.studio.drawing.charts import Axis, figure, text_of
from likely.studio.samples_view import _deal
from likely.studio.what_if_view import answer_of
from likely.studio.workspace import Workspace
from tests.studio.conftest import HOSTILE, client_of, python_of

FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def model(folder):
    return likely.load(folder / "model.likely")


@pytest.fixture(scope="module")
def rows(folder):
    return likely.datasets.read(folder / "people.csv")


def test_rows_are_in_the_order_of_the_file(folder, tmp_path, rows):
    assert Workspace(tmp_path, str(folder / "people.csv")).source.rows.equals(rows)


def test_the_filled_table_is_what_impute_gives(client, model, rows):
    answer = client.get("/table/filled.csv")
    found = pl.read_csv(io.BytesIO(answer.content))
    assert found.null_count().sum_horizontal().item() == 0
    assert found.equals(pl.read_csv(io.StringIO(model.impute(rows).write_csv())))


def test_rows_are_sorted_by_surprise(client, model, rows):
    text = client.get("/table/rows?order=surprise").text
    shown = [int(number) - 1 for number in re.findall(r"<tr><th>([\d,]+)</th>", text)]
    assert shown == model.surprise(rows, random_state=0).top(len(rows))[:200].tolist()
    assert re.search(r'class="number odd[1-4]"', text)
    assert "Rows 1 to 200 of 240" in text
    assert len(re.findall(r"<tr><th>\d", client.get("/table/rows?start=201").text)) == 40


def test_cells_that_take_minutes_are_not_shaded(client, monkeypatch):
    from likely.studio import table_view

    monkeypatch.setattr(table_view, "_SHADED_COLUMNS", 2)
    assert "Shaded cells" in client.get("/table/rows?order=surprise").text  # an exact model is quick
    can_shade = table_view._can_shade
    rough = type("Rough", (), {"evidence": type("Bound", (), {"kind": "lower"})})
    source = client.app.app.state.studio.space.source
    assert not can_shade(rough, source)
    monkeypatch.setattr(table_view, "_SHADED_COLUMNS", 3)
    assert can_shade(rough, source)
    monkeypatch.setattr(table_view, "_can_shade", lambda surprise, source: False)
    text = client.get("/table/rows?order=surprise").text
    assert "Cells are not shaded" in text
    assert "odd1" not in text


def test_holes_show_what_the_model_puts_there(client, model, rows):
    text = client.get("/table/rows").text
    row = rows["age"].is_null().arg_max()
    value = float(model.impute(rows)["age"][row])
    line = next(part for part in text.split("<tr>") if part.startswith(f"<th>{row + 1}</th>"))
    assert f"<i>{figure(value)}</i><small>" in line


def test_a_kind_is_changed_and_remembered(folder, tmp_path, access):
    client = client_of(Workspace(tmp_path, str(folder / "people.csv")), access)
    assert client.post("/table/column", content="column=0&kind=real", headers=FORM).status_code == 200
    assert client.post("/table/column", content="column=2&kind=identifier", headers=FORM).status_code == 200
    schema = Workspace(tmp_path, str(folder / "people.csv")).source.schema
    assert schema.kinds == ("real", "real")
    assert [left.name for left in schema.left_out] == ["word"]
    refused = client.post("/table/column", content="column=1&kind=binary", headers=FORM)
    assert refused.status_code == 409
    client.post("/table/column", content="column=2&kind=as+found", headers=FORM)
    assert Workspace(tmp_path, str(folder / "people.csv")).source.schema.names == ("age", HOSTILE, "word")


def test_a_model_of_columns_that_are_read_otherwise_is_not_used(client):
    client.post("/table/column", content="column=0&kind=real", headers=FORM)
    assert "does not fit the table" in client.get("/what-if").text
    assert client.get("/what-if/answer?a0=40").status_code == 409
    assert client.get("/table/filled.csv").status_code == 409


def test_what_if_is_condition_and_evidence(model, rows):
    encoded = model.schema_.encode(rows)
    axes = [Axis.of(column, encoded[:, place]) for place, column in enumerate(model.schema_.columns)]
    pins = np.array([40.0, np.nan, np.nan])
    found = answer_of(model, axes, pins)
    row = pl.DataFrame({"age": [40.0], HOSTILE: [None], "word": [None]}, schema=rows.schema)
    np.testing.assert_array_equal(found.shares[2], model.condition(row).probabilities("word")[0][axes[2].places])
    assert found.evidence.mean == model.evidence(row).mean
    # A pinned number is at its place in every draw.
    place = int(np.searchsorted(axes[0].places, 40.0)) - 1
    assert found.shares[0][place] == 1


def test_what_if_answers_with_evidence_and_two_scenarios(client):
    free = client.get("/what-if/answer").text
    assert "nothing is pinned" in free
    both = client.get("/what-if/answer?a0=30&b0=70").text
    assert "A: log p of what is pinned (1 column) = −" in both
    assert "B: log p of what is pinned (1 column) = −" in both
    assert "median +40" in both


def test_the_lines_of_python_give_what_is_shown(client, folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = client.get("/what-if/answer?a0=40&a2=1").text
    names: dict = {}
    exec(python_of(text), names)
    assert names["given"] == {"age": 40.0, "word": names["model"].schema_.columns[2].categories[1]}
    assert f"(2 columns) = {number(names['evidence'].mean)} nats" in html.unescape(text)
    assert (names["drawn"]["age"] == 40.0).all()


def test_the_first_pin_is_prepared_while_nothing_is_pinned(client):
    client.get("/what-if/answer")
    studio = client.app.app.state.studio
    (prepared,) = [own for name, own in studio._found.items() if name[0] == "what-if" and own.given]
    assert list(prepared.given) == ["age"]


def test_an_impossible_pin_is_explained(client):
    answer = client.get("/what-if/answer?a2=7")
    assert answer.status_code == 400
    assert "has no such value" in answer.text


def test_half_of_the_cards_are_real_test_rows(client, folder, monkeypatch):
    # One fixed deal: of all that there are, some draw a row with a hole that is also in the table.
    monkeypatch.setattr("likely.studio.samples_view._SECRET", 7)
    studio = client.app.app.state.studio
    data = likely.datasets.load(folder / "people.csv")
    real = {row.tobytes() for row in data.schema.encode(data.test)}
    cards, is_drawn = _deal(studio, 5)
    assert is_drawn.sum() == 6
    assert all((card.tobytes() in real) != drawn for card, drawn in zip(cards, is_drawn, strict=True))
    right = "&".join(f"c{place}=1" for place in np.flatnonzero(is_drawn))
    assert "12 of 12 right" in client.get(f"/samples/judge?deal=5&{right}").text
    assert "6 of 12 right" in client.get("/samples/judge?deal=5").text


def test_drawn_rows_are_those_of_sample(client, model):
    found = pl.read_csv(io.BytesIO(client.get("/samples/rows.csv?n=20&seed=3").content))
    assert found.equals(pl.read_csv(io.StringIO(model.sample(20, random_state=3).write_csv())))
    assert "p = " in client.get("/samples/test").text


def test_the_lines_of_python_of_samples_give_what_the_classifier_says(folder, tmp_path, access, monkeypatch):
    """Also of a table with a column that is left out, and so is in the real rows alone."""
    likely.datasets.read(folder / "people.csv").with_columns(empty=None).write_csv(tmp_path / "holes.csv")
    client = client_of(Workspace(tmp_path, str(tmp_path / "holes.csv"), [folder / "model.likely"]), access)
    monkeypatch.chdir(tmp_path)
    lines = python_of(client.get("/samples").text).replace("'model.likely'", repr(str(folder / "model.likely")))
    *lines, last = lines.splitlines()
    names: dict = {}
    exec("\n".join([*lines, f"found = {last}"]), names)
    assert f"p = {names['found'].p_value:.2g};" in client.get("/samples/test").text


def test_a_model_alone_can_be_asked_and_drawn_from(folder, tmp_path, access):
    client = client_of(Workspace(tmp_path, None, [folder / "model.likely"]), access)
    assert client.get("/").url.path == "/what-if"
    assert "nothing is pinned" in client.get("/what-if/answer").text
    assert "Drawn rows" in client.get("/samples").text
    assert "No table" in client.get("/table").text
    assert "No table" in client.get("/compare").text


def test_without_a_model_views_say_what_to_do(folder, tmp_path, access):
    client = client_of(Workspace(tmp_path, str(folder / "people.csv")), access)
    for view in ("table", "what-if", "samples"):
        assert "No model yet" in client.get(f"/{view}").text
    assert "Nothing compared yet" in client.get("/compare").text


@pytest.mark.parametrize("kind", ["real", "grid", "count"])
def test_shares_of_numbers_add_up(kind):
    cells = np.r_[np.random.default_rng(0).poisson(9, 100).astype(float), np.nan]
    column = likely.Column("x", kind, step=1.0 if kind == "grid" else None)
    assert Axis.of(column, cells).shares(cells).sum() == pytest.approx(1)
    assert text_of(column, 9.0) == "9"


BYTES = {"content-type": "application/octet-stream"}


def test_a_model_that_was_saved_is_loaded_and_used(folder, tmp_path, access):
    content = (folder / "model.likely").read_bytes()
    client = client_of(Workspace(tmp_path, str(folder / "people.csv")), access)
    answer = client.post("/models/load?name=../My+<b>model</b>.likely", content=content, headers=BYTES)
    assert (answer.status_code, answer.text) == (200, "<p>My-b-model-b.likely is in use.</p>")
    page = client.get("/compare").text
    assert "Models from files" in page
    assert "in use" in page
    assert client.get("/models/loaded-0001.likely").content == content
    (kept,) = (tmp_path / ".likely-studio" / "models").iterdir()
    assert kept.name == "0001-My-b-model-b.likely"
    assert (
        type(Workspace(tmp_path, str(folder / "people.csv")).model()).__name__ == "Independent"
    )  # the next studio too


def test_a_file_that_is_no_model_is_refused(client, folder, tmp_path):
    content = bytearray((folder / "model.likely").read_bytes())
    content[-1] ^= 1
    answer = client.post("/models/load?name=mine.likely", content=bytes(content), headers=BYTES)
    assert answer.status_code == 400
    assert "mine.likely" in answer.text
    assert not (tmp_path / ".likely-studio").exists()


def test_models_of_the_command_line_can_be_chosen_between(folder, tmp_path, access):
    other = tmp_path / "other.likely"
    other.write_bytes((folder / "model.likely").read_bytes())
    client = client_of(Workspace(tmp_path, str(folder / "people.csv"), [folder / "model.likely", other]), access)
    assert client.get("/compare").text.count("given at the start") == 2
    assert client.post("/use", content="model=file-1", headers=FORM, follow_redirects=False).status_code == 303
    assert "model: other.likely" in client.get("/table").text


def test_draws_of_whole_numbers_have_quantiles_among_them(client):
    text = html.unescape(client.get("/what-if/answer").text)
    ends = re.search(r"<span>(\d+) \((\d+) to (\d+)\)</span>", text)
    assert ends, "the age is shown in whole years"


def test_categories_are_named_along_the_axes(client):
    text = client.get("/samples/pairs?x=0&y=2").text
    assert re.search(r'<text x="5" [^>]*class="label strong">plain</text>', text)
    assert "↑ word<" in text  # without ends, which would be those of codes
