"""How long a training goes on where nobody says so: epochs by the rows, and rows held out to stop by."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import likely
from likely.contract.estimator import FitRun
from likely.contract.trained import MIN_HELD_OUT, N_VISITS
from likely.models.latent.variational import variational
from likely.models.latent.variational.discrete import discrete_vae
from tests.contracts.table import binary_rows, small

KEY = jax.random.key(0)
ROWS = np.arange(2000.0).reshape(1000, 2)


def test_a_tenth_is_held_out_and_the_rest_is_learned_from():
    rows, run = small("VAE")._divided(ROWS, KEY, FitRun(checkpoint="kept"))
    assert (len(rows), len(run.valid), run.checkpoint) == (900, 100, "kept")
    both = np.concatenate([rows, run.valid])
    np.testing.assert_array_equal(both[np.argsort(both[:, 0])], ROWS)
    # At random, not the first or the last: the middle of the places is that of a uniform draw, within four errors.
    assert abs(run.valid[:, 0].mean() - 999) < 4 * 577 / np.sqrt(100)
    again = small("VAE")._divided(ROWS, KEY, FitRun())[1]
    np.testing.assert_array_equal(again.valid, run.valid)


@pytest.mark.parametrize(
    ("model", "rows", "run"),
    [
        (small("VAE"), ROWS, FitRun(valid=ROWS[:3])),
        (small("VAE", held_out=0.0), ROWS, FitRun()),
        (small("VAE"), ROWS[: 10 * MIN_HELD_OUT - 1], FitRun()),
        (small("VAE", memory_budget=1000), ROWS, FitRun()),
    ],
    ids=["valid is given", "none is asked for", "too few rows", "rows stay where they are"],
)
def test_nothing_is_held_out(model, rows, run):
    learned, after = model._divided(rows, KEY, run)
    assert learned is rows
    assert after is run


def test_only_rows_that_may_be_held_out_are():
    among = np.arange(1000) % 4 == 0
    _, run = small("VAE")._divided(ROWS, KEY, FitRun(), among)
    assert len(run.valid) == 100
    assert set(run.valid[:, 0].tolist()) <= set(ROWS[among, 0].tolist())
    assert len(small("VAE")._divided(ROWS, KEY, FitRun(), np.arange(1000) < 150)[0]) == 1000  # too few of them


@pytest.mark.parametrize("n_rows", [100, 10_000, 200_000])
def test_epochs_follow_the_rows(n_rows):
    epochs = likely.VAE()._epochs(n_rows)
    assert 10 <= epochs <= 200
    assert epochs in (10, 200) or abs(epochs * n_rows - N_VISITS) < n_rows
    assert likely.VAE(n_epochs=7)._epochs(n_rows) == 7


def test_how_long_to_wait_for_a_better_epoch():
    given, held = FitRun(valid=ROWS), FitRun()
    wait = lambda model, before, after: model._stopping(before, after, 1000)["patience"]  # noqa: E731
    assert wait(likely.VAE(), held, given) == 40
    assert wait(likely.VAE(patience=3), held, given) == 3
    assert wait(likely.VAE(), given, given) is None
    assert wait(likely.VAE(patience=3), held, held) is None  # without rows to judge by there is nothing to wait for


@pytest.mark.parametrize(
    ("name", "module", "y"),
    [("VAE", variational, None), ("DiscreteVAE", discrete_vae, None), ("SemiSupervisedVAE", variational, "labels")],
)
def test_a_fit_holds_out_rows_and_says_so(name, module, y, monkeypatch):
    seen, train = {}, module.train

    def watched(first, objective, rows, **options):
        seen.update(rows=rows, valid=options["valid_rows"], config=options["config"])
        return train(first, objective, rows, **options)

    monkeypatch.setattr(module, "train", watched)
    X = binary_rows(0, n=600)
    labels = None if y is None else np.where(np.arange(600) < 100, X[:, 0], -1).astype(int)
    cls = getattr(likely, name)
    model = cls(2, hidden=(8,), n_epochs=6, random_state=0).fit(X, labels)
    assert model.history_["held_out"] == [60]
    assert (len(seen["rows"]), len(seen["valid"]), seen["config"].patience) == (540, 60, 5)
    assert len(model.history_["valid"]) == 6
    if y is not None:  # no label is wasted on validation
        assert np.isnan(seen["valid"][:, -1]).all()
        assert (~np.isnan(seen["rows"][:, -1])).sum() == 100
    given = cls(2, hidden=(8,), n_epochs=6, random_state=0).fit(X, labels, valid=X[:50])
    assert "held_out" not in given.history_
