"""Many rows are answered in batches: evidence, filled and drawn rows, and fits, as in one go."""

import functools

import jax
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sklearn.base import clone

import likely
from likely import memory
from likely.columns.columns import Columns
from likely.contract import batches, evidence
from likely.contract.batches import joined
from likely.contract.evidence import Evidence
from likely.models.graphs.bayesian_network import learning
from likely.models.graphs.circuit import leaves
from likely.models.graphs.structure import chow_liu
from likely.models.graphs.trees import learning as trees
from likely.models.latent.linear import em
from likely.models.latent.mixture import chunks, mixture
from likely.schema import frame_rows

N_ROWS = 1500


def table(seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, N_ROWS)
    frame = pl.DataFrame(
        {
            "real": rng.normal(3.0 * group),
            "rounded": np.round(rng.normal(group), 1),
            "count": rng.poisson(1 + group),
            "word": np.array(["red", "green", "blue"])[(group + (rng.random(N_ROWS) < 0.2)) % 3],
            "bit": (rng.random(N_ROWS) < 0.2 + 0.3 * group).astype(int),
        }
    )
    holes = rng.random((N_ROWS, frame.width)) < 0.1
    return frame.with_columns(
        pl.when(pl.Series(~holes[:, place])).then(pl.col(name)).alias(name) for place, name in enumerate(frame.columns)
    )


@pytest.fixture(scope="module")
def model():
    return likely.Mixture(3, max_iter=20, random_state=0).fit(table())


def in_small_batches(monkeypatch):
    monkeypatch.setattr(batches, "_CELLS_AT_ONCE", 256)
    assert batches.rows_at_once(5) == 256


def test_rows_of_many_bins_come_in_smaller_batches():
    """A row counts as many cells as it has numbers while a model works on it, which is more than its columns."""
    few, many = Columns(("real",) * 12, (2,) * 12), Columns(("categorical",) * 12, (64,) * 12)
    assert batches.cells_of(few) == 12
    assert batches.cells_of(many) == 12 * 64 / 4


def test_evidence_in_batches_is_evidence_in_one(model, monkeypatch):
    rows = table(1)
    whole = model.evidence(rows)
    in_small_batches(monkeypatch)
    found = model.evidence(rows)
    assert np.array_equal(found.values, whole.values)
    assert found.kind == "exact"
    assert found.fingerprint == whole.fingerprint
    assert np.array_equal(found.dimensions, whole.dimensions)
    assert (found - whole).mean == 0


def is_mapped(array) -> bool:
    """Whether it is a part of a file."""
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap)


@pytest.mark.parametrize("apart", [False, True])
def test_sampled_evidence_keeps_its_error_in_batches(apart, monkeypatch):
    rows = (np.random.default_rng(0).random((700, 24)) < 0.4).astype(float)
    model = likely.RBM(24, n_epochs=1, n_temperatures=50, n_chains=4, random_state=0).fit(rows)
    whole = model.evidence(rows)
    monkeypatch.setattr(batches, "_CELLS_AT_ONCE", 256)
    assert whole.kind == "estimate"
    if apart:
        monkeypatch.setattr(memory, "SPILL_BYTES", 100)
        monkeypatch.setattr(evidence, "_CELLS_AT_ONCE", 1000)
    found = model.evidence(rows)
    for name in ("values", "lower", "upper", "replicates", "stderr", "dimensions"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name
        # Errors are made when they are asked for.
        assert is_mapped(getattr(found, name)) == (apart and name != "stderr"), name
    for name in ("mean", "mean_stderr", "monte_carlo_stderr", "kind", "fingerprint", "bits_per_dimension", "method"):
        assert getattr(found, name) == getattr(whole, name), name
    assert found.mean_limits() == whole.mean_limits()
    assert str(found) == str(whole)


def test_limits_that_differ_from_the_values_in_some_batches_only_are_kept():
    about = {"method": "by hand", "fingerprint": "the rows"}
    one = Evidence.exact([-1.0, -2.0], **about)
    other = Evidence.lower_bound([-3.0], [[-3.5, -2.5]], **about)
    for parts in ([one, one, other], [other, one, one], [one, other, one]):
        found, last = joined(((part, number) for number, part in enumerate(parts)), np.empty(5))
        assert last == 2
        assert found.lower is found.values
        assert np.array_equal(found.values, np.concatenate([part.values for part in parts]))
        assert np.array_equal(found.upper, np.concatenate([part.upper for part in parts]))
        assert found.replicates is None  # Of some rows it is not known how far they are off.


def test_filled_and_cleaned_rows_in_batches_are_those_in_one(model, monkeypatch):
    rows = table(1)
    filled, cleaned = model.impute(rows), model.denoise(rows)
    in_small_batches(monkeypatch)
    assert_frame_equal(model.impute(rows), filled, check_exact=True)
    assert_frame_equal(model.denoise(rows), cleaned, check_exact=True)


def test_a_batch_that_is_left_out_or_given_twice_is_caught(model, monkeypatch):
    rows = table(1)
    whole = model.evidence(rows)
    in_small_batches(monkeypatch)
    honest = list(batches.batches(rows, 5))
    for faulty in (honest[:-1], [honest[1], honest[0], *honest[2:]], [*honest[:1], *honest]):
        monkeypatch.setattr("likely.contract.model.batches", lambda X, n, faulty=faulty: iter(faulty))
        if len(faulty) > len(honest):  # There is no room for more rows than there are.
            with pytest.raises(ValueError, match="could not broadcast"):
                model.evidence(rows)
            continue
        found = model.evidence(rows)
        assert len(found) != len(whole) or found.fingerprint != whole.fingerprint


def test_batches_of_draws_are_independent_and_of_the_model(model, monkeypatch):
    few = model.sample(256, random_state=5)
    in_small_batches(monkeypatch)
    drawn = model.sample(600, random_state=5)
    # The first batch is what a call with so many rows gives; the others have randomness of their own.
    assert_frame_equal(drawn.head(256), model.sample(256, random_state=5))
    assert_frame_equal(drawn.head(256), few)
    assert not drawn[256:512].equals(drawn[:256])
    assert_frame_equal(model.sample(600, random_state=5), drawn)
    assert model.sampling_.is_exact


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_a_fit_through_the_disk_has_the_bits_of_one_in_memory(covariance, monkeypatch):
    monkeypatch.setattr(mixture, "_MOST_ROWS_AT_ONCE", 500)
    monkeypatch.setattr(mixture, "_FIRST_ROWS", 200)
    monkeypatch.setattr(mixture, "_FIRST_ROWS_A_COMPONENT", 50)
    monkeypatch.setattr(chunks, "_CHUNK_CELLS", 4096)
    rows = table()
    make = lambda: likely.Mixture(3, covariance=covariance, max_iter=10, random_state=0)  # noqa: E731
    whole = make().fit(rows)
    monkeypatch.setattr(frame_rows, "LARGE", 100)
    monkeypatch.setattr(memory, "SPILL_BYTES", 100)
    apart = make().fit(rows)
    assert apart.history_ == whole.history_
    assert apart.fingerprint_ == whole.fingerprint_
    for one, other in zip(np.array(whole.params_.log_weights), np.array(apart.params_.log_weights), strict=True):
        assert one == other
    assert np.array_equal(apart.evidence(rows).values, whole.evidence(rows).values)


def test_chunks_add_up_to_the_sums_of_all_blocks(monkeypatch):
    rows = table().select("real", "bit", "count")
    monkeypatch.setattr(mixture, "suits", lambda layout: False)
    make = lambda: likely.Mixture(3, max_iter=15, tol=0, random_state=0, pseudo_count=1)  # noqa: E731
    whole = make().fit(rows)
    monkeypatch.setattr(mixture, "_stages", lambda n_rows, k: [n_rows])
    monkeypatch.setattr(mixture, "_MOST_ROWS_AT_ONCE", 100)
    monkeypatch.setattr(chunks, "_CHUNK_CELLS", 2048)
    found = make().fit(rows)
    # The same sums in another program: rounding of single precision, over fifteen iterations.
    assert np.allclose(found.history_["objective"], whole.history_["objective"], rtol=1e-5)

    def forgetful(self):
        yield from list(honest(self))[:-1]

    honest = chunks.Chunks.__iter__
    monkeypatch.setattr(chunks.Chunks, "__iter__", forgetful)
    assert not np.allclose(make().fit(rows).history_["objective"][:5], whole.history_["objective"][:5], rtol=1e-5)


def test_a_model_that_holds_all_rows_says_so_before_it_starts(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 2, (60_000, 4)).astype(float)
    monkeypatch.setenv(memory.VARIABLE, "2MB")
    with pytest.raises(ValueError, match=r"Hopfield holds all rows while it learns.*such as Independent, Mixture"):
        likely.Hopfield().fit(rows)


BY_PARTS = {
    "circuit": (likely.Circuit(4, n_trees=2, n_epochs=2, random_state=0), None),
    "trees": (likely.TreeMixture(2, max_iter=3, random_state=0), "holes"),
    "complete trees": (likely.TreeMixture(2, max_iter=3, random_state=0), "complete"),
    "factors": (likely.FactorAnalysis(2, max_iter=5, random_state=0), "holes"),
}


@pytest.mark.parametrize("name", BY_PARTS)
def test_fits_that_go_over_rows_part_by_part_are_those_of_rows_in_memory(name, monkeypatch):
    model, kind = BY_PARTS[name]
    rows = table().drop("rounded") if kind == "holes" else table().select("word", "bit", "real")
    rows = rows.select("word", "bit").drop_nulls() if kind == "complete" else rows
    rows = rows.drop("word") if name == "factors" else rows
    whole = clone(model).fit(rows)

    def apart():
        return clone(model).fit(rows)

    monkeypatch.setattr(memory, "SPILL_BYTES", 100)
    monkeypatch.setattr(memory, "_TAKEN_CELLS", 300)
    monkeypatch.setattr(trees, "_NUMBERS", 1000)
    monkeypatch.setattr(trees, "_BLOCK", 64)
    monkeypatch.setattr(em, "_CHUNK_CELLS", 1000)
    close = functools.partial(np.allclose, rtol=1e-5, atol=1e-7)  # the same sums, in another order
    equal = np.array_equal if name == "circuit" else close
    found = apart()
    pairs = zip(jax.tree.leaves(found.params_), jax.tree.leaves(whole.params_), strict=True)
    assert all(equal(one, other) for one, other in pairs)
    assert equal(found.history_["objective"], whole.history_["objective"])

    # What leaves the last part out, or takes another's rows, is caught.
    parts, many, take = trees.Parts.of, em.ManyRows.__iter__, leaves.RowsAsTaken.take
    monkeypatch.setattr(trees.Parts, "of", lambda self, *ends: iter(list(parts(self, *ends))[:-1]))
    monkeypatch.setattr(em.ManyRows, "__iter__", lambda self: iter(list(many(self))[:-1]))
    monkeypatch.setattr(
        leaves.RowsAsTaken, "take", lambda self, index: take(self, np.sort(np.arange(len(self))[index]))
    )
    assert not equal(apart().history_["objective"], whole.history_["objective"])


@pytest.mark.parametrize("holes", [False, True])
def test_networks_of_rows_on_the_disk_are_those_of_rows_in_memory(holes, monkeypatch):
    rows = table().select("real", "bit", "word", "count")
    rows = rows if holes else rows.drop_nulls()
    make = lambda: likely.BayesianNetwork(max_iter=3, random_state=0)  # noqa: E731
    whole = make().fit(rows)
    monkeypatch.setattr(memory, "SPILL_BYTES", 100)
    monkeypatch.setattr(learning, "_ROWS_COUNTED", 100)
    monkeypatch.setattr(chow_liu, "_INDICATORS", 1000)
    monkeypatch.setattr(memory, "_TAKEN_CELLS", 300)
    found = make().fit(rows)
    assert found.graph_ == whole.graph_
    for one, other in zip(jax.tree.leaves(found.params_), jax.tree.leaves(whole.params_), strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=0)

    honest = learning._complete
    monkeypatch.setattr(
        learning, "_complete", lambda node, *some: honest(node, *some[:2], some[2] * (len(some[2]) > 90))
    )
    forgetful = make().fit(rows)  # of the last part, or of those with few rows
    assert not np.allclose(forgetful.history_["objective"][0], whole.history_["objective"][0], rtol=1e-6)


def test_only_networks_whose_graph_is_searched_for_hold_all_rows(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 2, (60_000, 4)).astype(float)
    monkeypatch.setenv(memory.VARIABLE, "2MB")
    with pytest.raises(ValueError, match="BayesianNetwork holds all rows while it learns"):
        likely.BayesianNetwork(structure="search").fit(rows)
    assert len(likely.BayesianNetwork().fit(rows).graph_.nodes) == 4
