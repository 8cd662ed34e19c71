"""Networks whose numbers are cut into bins: parents of discrete columns, with the density of a histogram."""

import numpy as np
import polars as pl
import pytest

import likely
from likely.models.graphs.graph.graph import GraphError

TEXT = "age -> sick; age -> visits; visits -> sick; sick -> weight"


@pytest.fixture(scope="module")
def table():
    rng, n = np.random.default_rng(0), 400
    age = rng.gamma(4, 10, n)
    sick = rng.random(n) < 1 / (1 + np.exp((45 - age) / 8))
    visits = rng.poisson(age / 20)
    return pl.DataFrame({"age": age, "visits": visits, "sick": sick, "weight": 70 + 5 * sick + rng.normal(0, 9, n)})


@pytest.fixture(scope="module")
def net(table):
    schema = likely.Schema.infer(table, kinds={"visits": "count", "age": "real", "weight": "real"})
    return likely.BayesianNetwork(TEXT, bins=4, schema=schema, pseudo_count=1.0, prior="rows").fit(table)


def only(table, **values):
    """A row of which these cells are observed."""
    row = {name: [values.get(name)] for name in table.columns}
    return pl.DataFrame(row, schema=table.schema)


def test_evidence_is_that_of_counts_in_bins_over_their_widths(table, net):
    """p(age, sick) from the table's own counts: the oracle shares nothing with the network but the borders."""
    borders = net.cells_.codecs[0].borders
    age, sick, visits = (table[name].to_numpy() for name in ("age", "sick", "visits"))
    bins = np.digitize(age, borders[1:-1])
    own = int(np.digitize(40.0, borders[1:-1]))
    assert 0 < own < 3  # a bin without tails
    p_bin = (np.sum(bins == own) + 0.25) / (len(age) + 1)
    seen = net.evidence(only(table, age=40.0)).values[0]
    np.testing.assert_allclose(seen, np.log(p_bin / np.diff(borders)[own]), rtol=1e-6)
    groups = net.cells_.codecs[1].encode(visits.astype(float))[:, 0]
    total = 0.0
    for group in np.unique(groups):
        inside = (bins == own) & (groups == group)
        p_group = (inside.sum() + 1 / len(np.unique(groups))) / ((bins == own).sum() + 1)
        total += p_group * ((sick & inside).sum() + 0.5) / (inside.sum() + 1)
    both = net.evidence(only(table, age=40.0, sick=True)).values[0]
    np.testing.assert_allclose(both - seen, np.log(total), rtol=1e-6)


def test_the_joint_density_integrates_to_the_probability_of_the_rest(table, net):
    """Two Gauss nodes are exact where a density is constant, Laguerre's along an exponential tail."""
    codec = net.cells_.codecs[0]
    nodes, weights = np.polynomial.legendre.leggauss(2)
    half = np.diff(codec.borders) / 2
    x = [codec.borders[:-1, None] + half[:, None] * (nodes + 1)]
    w = [half[:, None] * weights]
    nodes, weights = np.polynomial.laguerre.laggauss(4)
    for end, sign, limit in ((codec.borders[0], -1, codec.low), (codec.borders[-1], 1, codec.high)):
        if np.isinf(limit):
            x.append(end + sign * codec.reach * nodes)
            w.append(codec.reach * weights * np.exp(nodes))
        else:
            far, shares = np.polynomial.legendre.leggauss(40)
            x.append(end + (limit - end) * (far + 1) / 2)
            w.append(abs(limit - end) * shares / 2)
    ages, shares = (np.concatenate([part.ravel() for part in parts]) for parts in (x, w))
    rows = pl.concat([only(table, sick=True)] * len(ages)).with_columns(pl.Series("age", ages))
    total = shares @ np.exp(net.evidence(rows).values)
    np.testing.assert_allclose(total, np.exp(net.evidence(only(table, sick=True)).values[0]), rtol=1e-6)


def test_questions_take_numbers_and_name_ranges(table, net):
    found = net.marginals({"age": 40.0})
    np.testing.assert_allclose(found.log_evidence, net.evidence(only(table, age=40.0)).values[0], rtol=1e-6)
    assert found["age"][next(name for name, p in found["age"].items() if p == 1)] == 1
    assert net.query("sick", {"age": 20})["probability"][1] < net.query("sick", {"age": 80})["probability"][1]
    assert net.do(age=80).marginals()["sick"][True] == pytest.approx(net.marginals({"age": 80})["sick"][True])
    assert net.evidence(table).measure == likely.Independent(schema=net.schema_).fit(table).evidence(table).measure
    drawn = net.sample(2000, random_state=0)
    shares = np.bincount(net.cells_.codecs[0].encode(drawn["age"].to_numpy())[:, 0].astype(int)) / 2000
    wanted = np.array(list(net.marginals()["age"].values()))
    assert (np.abs(shares - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / 2000)).all()


def test_what_is_cut_is_what_the_graph_asks_for(table, net, tmp_path):
    assert net.columns_.kinds == ("categorical", "categorical", "binary", "real")
    deeper = likely.BayesianNetwork("weight -> age -> sick", bins=3, schema=net.schema_).fit(table)
    assert deeper.columns_.kinds == ("categorical", "count", "binary", "categorical")
    chosen = likely.BayesianNetwork("tree", bins={"age": 3}, schema=net.schema_).fit(table)
    assert chosen.columns_.kinds == ("categorical", "count", "binary", "real")
    net.save(tmp_path / "net.likely")
    again = likely.load(tmp_path / "net.likely")
    np.testing.assert_array_equal(again.evidence(table).values, net.evidence(table).values)


@pytest.mark.parametrize(
    ("bins", "match"),
    [
        (None, r"'age' → 'sick' leads from a real to a binary column.*bins=8"),
        (1, "`bins` must be a whole number of at least 2, got 1"),
        ({"agee": 3}, "Did you mean 'age'"),
        ({"sick": 3}, "only numbers are cut"),
        ({"age": 2.5}, "the number of bins of 'age'"),
    ],
)
def test_bad_bins_are_refused(table, net, bins, match):
    with pytest.raises((ValueError, GraphError), match=match):
        likely.BayesianNetwork("age -> sick", bins=bins, schema=net.schema_).fit(table)
