"""The Structure view, `do` beside `see`, painted pictures, and pairs: what the library says, in a page."""

from __future__ import annotations

import html
import itertools
import re

import numpy as np
import pytest

import likely
from likely.studio.drawing.charts import Axis
from likely.studio.structures import around, separator, structures
from likely.studio.what_if_view import answer_of
from likely.studio.workspace import Workspace
from tests.studio.conftest import HOSTILE, client_of, python_of

WET = [[[1.0, 0.0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]]]
TABLES = {"rain": [0.8, 0.2], HOSTILE: [0.9, 0.1], "wet": WET}


@pytest.fixture(scope="module")
def net():
    graph = likely.Graph([("rain", "wet"), (HOSTILE, "wet")])
    return likely.BayesianNetwork.from_tables(graph, TABLES, states=("no", "yes"))


@pytest.fixture
def network(net, tmp_path, access):
    net.save(tmp_path / "net.likely")
    return client_of(Workspace(tmp_path, None, [tmp_path / "net.likely"]), access)


def chances(text: str) -> list[float]:
    return [float(figure) for figure in re.findall(r'<td class="number">([\d.]+)%</td>', text)]


def test_a_click_shows_the_table_of_a_column(network, net, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = net.graph_.nodes.index("wet")
    text = network.get(f"/structure/answer?node={place}").text
    expected = 100 * np.asarray(WET).reshape(-1)
    np.testing.assert_allclose(chances(text), expected, atol=0.05 + 1e-9)  # shown to a tenth of a per cent
    assert "3 columns, 2 directed edges" in text
    assert "&lt;img" in text
    assert "<img" not in text
    *lines, last = python_of(text).splitlines()
    names: dict = {}
    exec("\n".join([*lines, f"found = {last}"]), names)
    np.testing.assert_allclose(names["found"][0], WET[0][0])


def test_rows_are_drawn_from_a_network_that_no_table_was_fitted_to(network):
    assert network.get("/samples/deal?deal=3").text.count("<tr>") == 13
    assert "holes=None" in python_of(network.get("/samples").text)


def test_a_pair_says_what_separates_it(network, net):
    at = {name: net.graph_.nodes.index(name) for name in net.graph_.nodes}
    pair = f"node={at['rain']}&other={at[HOSTILE]}"
    assert "are separated" in network.get(f"/structure/answer?{pair}").text
    opened = html.unescape(network.get(f"/structure/answer?{pair}&g{at['wet']}=1").text)
    assert str(net.graph_.separated(HOSTILE, "rain", "wet", why=True))[1:] in opened
    assert opened.count("edge open-path") == 2
    joined = network.get(f"/structure/answer?node={at['rain']}&other={at['wet']}").text
    assert "An edge joins them" in joined


def test_a_separator_separates_and_nothing_smaller_does(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(30):
        names = list("abcdef")
        edges = [(a, b) for a, b in itertools.combinations(names, 2) if rng.random() < 0.4]
        directed = bool(rng.integers(2))
        graph = likely.Graph(edges if directed else [], undirected=() if directed else edges, nodes=names)
        for a, b in itertools.combinations(names, 2):
            rest = [name for name in names if name not in (a, b)]
            sizes = [len(some) for n in range(5) for some in itertools.combinations(rest, n)
                     if graph.separated(a, b, some)]  # fmt: skip
            found = separator(graph, a, b)
            assert (found is None) == (not sizes)
            if found is not None:
                assert graph.separated(a, b, found)
                assert len(found) == min(sizes)


def test_a_large_graph_is_drawn_around_a_column():
    chain = likely.Graph([(f"x{i}", f"x{i + 1}") for i in range(300)])
    shown, words = around(chain, "x150")
    assert "x150" in shown
    assert 2 < len(shown) <= 60
    assert "nearest to x150" in words


def test_couplings_and_trees_are_structures():
    machine = likely.BoltzmannMachine.from_weights([[0, 2, 0], [2, 0, -1], [0, -1, 0]])
    (found,) = structures(machine)
    assert found.strengths == {("x0", "x1"): 2.0, ("x1", "x2"): -1.0}
    assert found.graph.separated("x0", "x2", "x1")
    rows = np.random.default_rng(0).integers(0, 2, (60, 4)).astype(float)
    trees = structures(likely.TreeMixture(2, random_state=0).fit(rows))
    assert [tree.name for tree in trees] == ["1 of 2", "2 of 2"]
    assert not trees[0].separates  # through the component they hang together
    assert structures(likely.TreeMixture(1, random_state=0).fit(rows))[0].separates


def test_models_without_a_graph_say_so(client):
    assert "has no graph of its columns" in client.get("/structure").text
    assert client.get("/structure/answer").status_code == 409


def test_do_is_not_see(net, network, tmp_path, monkeypatch):
    columns = net.schema_.columns
    axes = [Axis.of(column, np.array([0.0, 1.0])) for column in columns]
    rain, wet = net.schema_.names.index("rain"), net.schema_.names.index("wet")
    pins = np.where(np.arange(3) == wet, 1.0, np.nan)
    seen, done = (answer_of(net, axes, pins, how).middles[rain][1] for how in ("see", "do"))
    assert seen == pytest.approx(net.marginals({"wet": "yes"})["rain"]["yes"])
    assert done == pytest.approx(0.2)
    # What was done is so, and its effects follow.
    assert answer_of(net, axes, pins, "do").middles[wet].tolist() == [0.0, 1.0]
    set_rain = np.where(np.arange(3) == rain, 1.0, np.nan)
    assert answer_of(net, axes, set_rain, "do").middles[wet][1] == pytest.approx(0.9 * 0.9 + 0.1 * 0.99)
    monkeypatch.chdir(tmp_path)
    text = network.get(f"/what-if/answer?a{wet}=1&ahow=do&b{wet}=1").text
    assert "set by do: an intervention has no evidence" in text
    assert "set to yes" in text
    assert "pinned to yes" in text
    names: dict = {}
    exec(python_of(text), names)
    np.testing.assert_allclose(names["found"].probabilities("rain")[0], [0.8, 0.2])
    assert f'data-pick="a{wet}"' in text  # a click on a bar pins


def test_do_is_of_networks(client):
    assert client.get("/what-if/answer?a0=40&ahow=do").status_code == 400


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    rows = (rng.random((80, 6)) < 0.5).astype(float)
    schema = likely.Schema.binary(6, image_shape=(2, 3))
    likely.Independent(schema=schema, random_state=0).fit(rows).save(folder / "model.likely")
    return folder


def test_a_painted_picture_is_completed(pictures, tmp_path, access, monkeypatch):
    client = client_of(Workspace(tmp_path, None, [pictures / "model.likely"]), access)
    monkeypatch.chdir(pictures)
    assert 'data-paint="pixels"' in client.get("/what-if").text
    text = client.get("/what-if/paint?pixels=90????&brush=9").text
    assert "4 of 6 pixels are open" in text
    names: dict = {}
    exec(python_of(text), names)
    model = likely.load(pictures / "model.likely")
    expected = model.condition(np.array([[1, 0, *[np.nan] * 4]])).expected()
    np.testing.assert_allclose(names["found"].expected(), expected)
    answer = client.get("/what-if/completion.png?pixels=90????")
    assert answer.headers["content-type"] == "image/png"
    for wrong in ("90???", "90???x", ""):
        assert client.get(f"/what-if/paint?pixels={wrong}").status_code == 400


def test_pairs_are_real_and_drawn(client):
    text = client.get("/samples/pairs?x=0&y=2").text
    titles = re.findall(r"<figcaption>(.*?)</figcaption>", text)
    assert titles == ["real, 24 rows", "drawn, 24 rows"]
    assert client.get("/samples/pairs?x=9").status_code == 400
