"""What every model that is trained step by step keeps: checkpoints, resuming, rows larger than memory."""

import inspect

import jax
import numpy as np
import pytest

import likely
from likely.storage import registry
from tests.contracts.table import NAMES, binary_rows, labels_for, rows_for, small

# One size of table and batch for all fits here, since each new one is compiled anew.
N_ROWS, OPTIONS = 2000, {"n_epochs": 10, "batch_size": 50}
TRAINED = [name for name in NAMES if registry.model_class(name)._resumable]


class Interrupted(Exception):
    """Stands for a crash."""


class CrashAfter:
    """A reporter that raises after some updates."""

    def __init__(self, n: int):
        self.left = n

    def start(self, total, label):
        pass

    def update(self, done, metrics):
        self.left -= 1
        if self.left == 0:
            raise Interrupted

    def finish(self):
        pass


def same(first, second):
    jax.tree.map(np.testing.assert_array_equal, first.params_, second.params_)


@pytest.mark.parametrize("name", TRAINED)
def test_a_resumed_fit_has_the_bits_of_an_uninterrupted_one(name, tmp_path):
    X, path = binary_rows(0, n=N_ROWS), tmp_path / "run.checkpoint"
    model, y = small(name, **OPTIONS), labels_for(name, X)
    with likely.training.use_reporter(CrashAfter(8)), pytest.raises(Interrupted):
        model.fit(X, y, checkpoint=likely.Checkpoint(path, every_steps=5))
    assert path.exists()
    resumed = small(name, **OPTIONS).fit(X, y, resume=path)
    same(resumed, small(name, **OPTIONS).fit(X, y))


@pytest.mark.parametrize("name", TRAINED)
def test_resuming_on_other_data_is_refused(name, tmp_path):
    path = tmp_path / "run.checkpoint"
    X, others = (binary_rows(seed, n=N_ROWS) for seed in (0, 1))
    small(name, **OPTIONS).fit(X, labels_for(name, X), checkpoint=path)
    with pytest.raises(ValueError, match="rows"):
        small(name, **OPTIONS).fit(others, labels_for(name, X), resume=path)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in TRAINED])
def test_models_without_steps_have_no_checkpoints(name, tmp_path):
    with pytest.raises(ValueError, match="has no checkpoints"):
        small(name).fit(rows_for(name)(0), checkpoint=tmp_path / "run.checkpoint")


@pytest.mark.parametrize("name", [name for name in TRAINED if registry.find(name).has_evidence])
def test_rows_larger_than_the_budget_are_streamed_from_a_memory_map(name, tmp_path):
    """Streaming shuffles within blocks, so bits differ; what is learned must not."""
    assert "memory_budget" in inspect.signature(registry.model_class(name)).parameters
    rows = binary_rows(0, n=N_ROWS).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    y = labels_for(name, rows)
    streamed = small(name, memory_budget=16_000, **OPTIONS).fit(mapped, y)
    whole, base = small(name, **OPTIONS).fit(rows, y), small("Independent").fit(rows)
    gains = whole.score_samples(rows) - base.score_samples(rows)
    gain = gains.mean()
    assert gain > 5 * gains.std() / np.sqrt(len(gains))
    assert abs(streamed.score(rows) - whole.score(rows)) < 0.2 * gain
