"""The Map view: codes, words and sentences, as the library gives them."""

from __future__ import annotations

import html
import re

import numpy as np
import polars as pl
import pytest

import likely
from likely.studio.map_view import Codes, Plane, _plane
from likely.studio.requests import BadRequest
from likely.studio.workspace import Workspace
from tests.studio.conftest import HOSTILE, client_of, python_of

TEXT = ["the dog ran away", "the cat ran away", "the dog sleeps", "a dog saw the cat", f"the cat sleeps {HOSTILE}"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A text, a model of it, vectors of its words, and a linear code of numbers."""
    folder = tmp_path_factory.mktemp("map")
    (folder / "text.txt").write_text("\n".join(TEXT * 4) + "\n")
    likely.NGram(2, random_state=0).fit(TEXT * 4).save(folder / "ngram.likely")
    words = likely.SkipGram("softmax", n_components=4, min_count=1, n_epochs=2, subsample=0, random_state=0)
    words.fit(TEXT * 4).save(folder / "words.likely")
    rows = np.random.default_rng(0).normal(size=(200, 2)) @ np.array([[1, 2, 0, 1.0], [0, 1, 3, -1]])
    likely.ProbabilisticPCA(2, random_state=0).fit(rows).save(folder / "pca.likely")
    return folder


def asked(place, tmp_path, access, model, data=None):
    return client_of(Workspace(tmp_path, data, [place / model]), access)


def test_a_click_decodes_and_a_line_interpolates(place, tmp_path, access, monkeypatch):
    client = asked(place, tmp_path, access, "pca.likely")
    monkeypatch.chdir(place)
    one = client.get("/map/answer?view=pair&x=1&y=2&x0=0.5&y0=-1").text
    model = likely.load(place / "pca.likely")
    shown = [text.replace("−", "-").replace(",", "") for text in re.findall(r'<td class="number">(.*?)</td>', one)]
    np.testing.assert_allclose([float(text) for text in shown], model.inverse_transform([[0.5, -1]])[0], rtol=1e-3)
    line = client.get("/map/answer?view=pair&x=1&y=2&x0=0.5&y0=-1&x1=1.5&y1=1&colour=2").text
    assert len(re.findall(r'<td class="number">', line)) == 7 * 4
    assert len(re.findall(r'class="point q\d"', line)) == 500
    *lines, last = python_of(line).splitlines()
    names: dict = {}
    exec("\n".join([*lines, f"found = {last}"]), names)
    expected = model.inverse_transform(np.linspace([0.5, -1], [1.5, 1], 7))
    np.testing.assert_allclose(names["found"], expected, rtol=1e-5, atol=1e-5)


def test_a_projection_has_the_most_variance_of_all_planes(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    codes = rng.normal(size=(300, 4)) * [1.0, 3.0, 0.2, 2.0]
    plane = Plane.of_projection(codes)
    points = plane.points(codes)
    ordered = np.sort(np.linalg.eigvalsh(np.cov(codes.T)))[::-1]
    np.testing.assert_allclose(points.var(axis=0, ddof=1), ordered[:2])
    # What lies in the plane comes back from its place; the planted bug, a plane without its origin, does not.
    inside = plane.codes(points)
    np.testing.assert_allclose(plane.points(inside), points, atol=1e-12)
    assert np.abs(points @ plane.axes - inside).max() > 1e-3


def test_what_a_projection_does_not_need_is_checked_all_the_same():
    codes = Codes(np.eye(4), np.zeros((4, 1)), None, are_shares=False, add_up=False)
    assert _plane(codes, {"x": "2"}).names[0] == "first direction"
    for wrong in ({"x": "0"}, {"y": "5"}, {"view": "pair", "x": "1", "y": "1"}):
        with pytest.raises(BadRequest):
            _plane(codes, wrong)


def test_codes_that_are_shares_stay_shares():
    codes = Codes(np.eye(3), np.zeros((3, 1)), None, are_shares=True, add_up=True)
    found = codes.allowed(np.array([[0.5, -0.2, 1.4]]))
    np.testing.assert_allclose(found, [[1 / 3, 0, 2 / 3]])


def test_surprise_of_tokens_is_that_of_the_model(place, tmp_path, access, monkeypatch):
    client = asked(place, tmp_path, access, "ngram.likely", str(place / "text.txt"))
    monkeypatch.chdir(place)
    text = client.get("/map/sentence?text=the+dog++saw+away").text
    model = likely.load(place / "ngram.likely")
    (scores,) = model.token_scores(["the dog saw away"])
    assert re.findall(r"<small>([\d.]+)</small>", text) == [f"{-score:.1f}" for score in scores]
    # Without a choice what was expected at the most surprising token is shown.
    best = model.expected(["the dog saw away"])[0][int(np.argmin(scores))][0]
    shown = re.search(r"<th>(.*?)</th><td><meter.*?</td><td class=\"number\">(.*?)</td>", text)
    assert (html.unescape(shown[1]), shown[2]) == (best[0], f"{best[1]:.1%}")
    assert "After the beginning came &#x27;the&#x27;" in client.get("/map/sentence?text=the+dog&at=0").text
    exec(python_of(text), {})


def test_text_is_ranked_by_surprise(place, tmp_path, access):
    client = asked(place, tmp_path, access, "ngram.likely", str(place / "text.txt"))
    assert client.get("/").url.path == "/table"
    text = client.get("/table/sentences?order=surprise").text
    data = likely.datasets.load(place / "text.txt")
    means = [-own.mean() for own in likely.load(place / "ngram.likely").token_scores(list(data.test))]
    assert re.findall(r'<td class="number">(.*?)</td>', text) == [f"{mean:.2f}" for mean in sorted(means)[::-1]]
    assert "m-ngram" in client.get("/compare").text
    assert "no columns to pin" in client.get("/what-if").text
    assert "of 12 right" in client.get("/samples/judge?deal=3&c0=1").text
    assert len(client.get("/samples/rows.csv?n=5").text.splitlines()) == 5


def test_neighbours_and_analogies_are_those_of_the_vectors(place, tmp_path, access, monkeypatch):
    client = asked(place, tmp_path, access, "words.likely")
    monkeypatch.chdir(place)
    assert client.get("/").url.path == "/map"
    text = client.get("/map/words?word=dog&a=dog&b=cat&c=the").text
    model = likely.load(place / "words.likely")
    near = [html.unescape(word) for word in re.findall(r'data-value="(.*?)"', text)]
    wanted = [word for word, _ in [*model.most_similar("dog", 12), *model.analogy("dog", "cat", "the", n=6)]]
    assert near == wanted
    assert "draws no sentences" in client.get("/samples").text
    assert "&#x27;unheard&#x27; has no vector" in client.get("/map/words?word=unheard").text
    exec(python_of(text), {})


def test_names_of_columns_stay_text(tmp_path, access):
    rows = np.random.default_rng(0).normal(size=(60, 2)) @ np.array([[1, 2, 0], [0, 1, 3.0]])
    frame = pl.DataFrame(rows, schema=[HOSTILE, "b", "c"])
    likely.ProbabilisticPCA(2, random_state=0).fit(frame).save(tmp_path / "pca.likely")
    client = asked(tmp_path, tmp_path, access, "pca.likely")
    for address in ("/map", "/map/answer?colour=0&x0=0&y0=0", "/map/answer?colour=0&x0=0&y0=0&x1=1&y1=1"):
        text = client.get(address).text
        assert "&lt;img" in text
        assert "<img" not in text


@pytest.mark.parametrize("model", ["ngram.likely", "words.likely"])
def test_tokens_stay_text(place, tmp_path, access, model):
    client = asked(place, tmp_path, access, model, str(place / "text.txt"))
    word = "%22%3E%3Cimg"
    for address in ("/map", "/table/sentences", f"/map/sentence?text={word}", f"/map/words?word={word}", "/samples"):
        assert "<img" not in client.get(address).text


def test_models_without_codes_say_so(client):
    assert "no code of a row" in client.get("/map").text
    assert client.get("/map/answer").status_code == 409
    assert client.get("/map/sentence?text=a").status_code == 409
    assert client.get("/map/words").status_code == 409
