"""Deep belief network: p(x, h1, ..., hL) = p(x | h1) p(h1 | h2) ... p(h_{L-1}, hL), the last factor an RBM's.

Hinton, Osindero and Teh (2006): learned layer by layer, then fine-tuned by wake-sleep. Cost: an RBM's for each layer.
The evidence is exact where the layers below the top can be enumerated; beyond, a lower bound by importance sampling
from the way up, with log Z of the top RBM exact or from annealed importance sampling.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from likely.contract.conditional import ConditionalParts
from likely.contract.drawing.mixing import Mixing
from likely.contract.model import FitRun
from likely.contract.settings import Positive, Several, Sizes, Whole
from likely.contract.trained import between, epochs_for
from likely.models.energy.harmonium.answers import Exact, Sampled, answers
from likely.models.energy.harmonium.machine import hidden_logits, visible_natural
from likely.models.energy.harmonium.rbm import moments
from likely.models.energy.layered.dbn import network
from likely.models.energy.layered.dbn.levels import assembled, greedy, untrained
from likely.models.energy.layered.dbn.network import DBNParams
from likely.models.energy.layered.dbn.up_down import (
    TuningState,
    keep_all_scales,
    to_learning_coordinates,
    to_natural_coordinates,
    up_down,
)
from likely.models.energy.layered.greedy import bits, expected_codes, fill
from likely.models.energy.layered.layered_model import LayeredModel
from likely.models.energy.layered.stages import Stages, check_layers, steps_rate
from likely.models.energy.normaliser.answers import HOLED_ROWS
from likely.models.energy.normaliser.enumerated_counts import enumerated_counts
from likely.models.energy.normaliser.log_sum import LogSum, evidence_of_bounds, evidence_of_sums
from likely.models.energy.normaliser.row_noise import row_keys, row_numbers
from likely.runtime import BLOCK_ROWS, by_blocks, on_device


class DBN(LayeredModel):
    """Deep belief network with layers of binary hidden units and visible units of any columns.

    Parameters
    ----------
    layers : sizes of the hidden layers, from below. With one layer it is an `RBM`.
    tied_start : start a layer that is at least as large as the one two below with that one's weights, transposed: the
        network then is what it was before, and learning can only gain. False starts near zero.
    centring : measure units from their means in the gradient of each RBM.
    n_gibbs_steps, n_chains : sweeps of the persistent chains an update, and how many there are. Those of the top RBM
        are kept with the model: samples start from them.
    n_epochs, learning_rate : of each layer. A rate of None is 0.2 for binary and categorical columns, 0.05 where a
        column's statistics are unbounded; with another optimizer than "sgd", that one's own default.
    n_tuning_epochs, tuning_rate : of the up-down fine-tuning; 0 epochs leave it out, a rate of None is a tenth of the
        layers' one.
    batch_size, optimizer, schedule, warmup_steps, weight_decay, gradient_clip, averaging, memory_budget : see
        `likely.training.TrainingConfig`; of each stage of learning.
    n_importance : samples from the way up behind a row's bound (which rises with it) and behind a conditional.
    n_temperatures, n_ais_chains : of annealed importance sampling, where log Z of the top cannot be enumerated.
    n_sweeps : Gibbs sweeps of the top before a sample is taken, where it cannot be drawn exactly.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Notes
    -----
    In the bound of a row with unobserved cells only the observed ones count, exactly; the way up sees the others at
    their expected values given h1, found by going up and down between x and h1. Where log Z is estimated,
    `Evidence.lower` takes it from the reverse run, which is high on average, and `values` from the forward run.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> model = likely.DBN((24, 16), n_epochs=5, n_importance=16, random_state=0).fit(digits.train)
    >>> model.evidence(digits.test).kind
    'lower'
    """

    layers: Sizes = (64, 64)
    _: KW_ONLY
    tied_start: bool = True
    n_tuning_epochs: Whole = 10
    tuning_rate: Positive | None = None
    n_importance: Several = 256

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # A second layer as wide as the columns can start with the first one's weights, and so with its evidence.
        width = between(16, n_columns, 256)
        rate = {"learning_rate": 0.3} if kinds <= {"binary", "categorical"} else {}
        return {"layers": (width, width), "n_epochs": epochs_for(100_000, n_rows), "batch_size": 50} | rate

    def _init(self, key, columns):
        return assembled(untrained(key, columns, tuple(self.layers), self.n_chains))

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> DBNParams:
        check_layers(self.layers)
        columns = self.columns_
        init_key, greedy_key, tune_key = jax.random.split(key, 3)
        tunes = len(self.layers) > 1 and self.n_tuning_epochs > 0
        stages, rate = Stages(run, len(self.layers) + tunes), steps_rate(self, columns, bounded=0.2)
        mean, variance = moments(rows, columns)
        levels = greedy(
            greedy_key,
            stages,
            untrained(init_key, columns, tuple(self.layers), self.n_chains),
            rows,
            columns=columns,
            moments=(mean, variance),
            tied_start=self.tied_start,
            config=self._training(n_epochs=self.n_epochs, learning_rate=rate),
            centring=self.centring,
            n_gibbs_steps=self.n_gibbs_steps,
        )
        params = assembled(levels)
        if tunes:
            slower = self.tuning_rate or (None if rate is None else rate / 10)
            params = self._tuned(tune_key, stages, params, rows, variance, slower)
        self.history_ = stages.history
        return params

    def _tuned(self, key, stages, params, rows, variance, rate) -> DBNParams:
        columns = self.columns_
        result = stages.train(
            to_learning_coordinates(params, columns),
            partial(up_down, columns=columns, n_gibbs_steps=self.n_gibbs_steps),
            rows,
            config=self._training(n_epochs=self.n_tuning_epochs, learning_rate=rate),
            key=key,
            state=TuningState(params.top.chains.astype(variance.dtype), variance),
            project=partial(keep_all_scales, columns=columns) if columns.is_quadratic.any() else None,
            label="DBN, up and down",
        )
        chains = result.state.chains.astype(bool)
        return eqx.tree_at(lambda p: p.top.chains, to_natural_coordinates(result.module, columns), chains)

    # --------------------------------------------------------------------- evidence
    def _answers(self) -> Exact | Sampled:
        """What the RBM on top answers; with one hidden layer it is the whole network."""
        columns = self.columns_ if self._is_rbm else bits(int(self.layers[-2]))
        return answers(self.params_.top, columns, self._ais_settings())

    @property
    def _is_rbm(self) -> bool:
        return len(self.layers) == 1

    def _evidence(self, rows, key):
        top, log_z = self._answers(), self.log_partition()
        if self._is_rbm:
            return evidence_of_sums(top.log_sum(key, rows), log_z, rows, top.method)
        if network.enumerable(self.params_):
            sums = LogSum.exact(self._sums(rows)[0])
            return evidence_of_sums(sums, log_z, rows, "enumeration of the layers below the top")
        noise_key = jax.random.fold_in(key, 1)
        bounds, replicates = by_blocks(lambda x, observed: self._weigh(noise_key, x, observed)[:2], rows)
        method = f"bound by {self.n_importance} samples of the way up; log Z of the top by {top.method}"
        return evidence_of_bounds(bounds, replicates, log_z, rows, method)

    def _weigh(self, key: jax.Array, x: jax.Array, observed: jax.Array | None, conditional: bool = False) -> Any:
        return network.weigh_rows(key, self.params_, x, observed, self.columns_, self.n_importance, conditional)

    def _sums(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return by_blocks(lambda x, o: network.exact_sums(self.params_, x, o, self.columns_), rows)

    def _sample(self, key, n):
        top_key, down_key = jax.random.split(key)
        drawn = self._answers().sample(top_key, n)
        if self._is_rbm:
            return self._drawn(drawn)
        return self._drawn(network.draw_down(down_key, self.params_, on_device(drawn), self.columns_))

    def _condition(self, rows, key):
        if self._is_rbm:
            return self._answers().condition(key, rows)
        if network.enumerable(self.params_):
            expect = lambda x, o, f: network.exact_expectation(self.params_, x, o, self.columns_, f)  # noqa: E731
            counts = enumerated_counts(rows, self.columns_, expect)
            return ConditionalParts(self._sums(rows)[1], partial(self._exact_draws, rows=rows), counts=counts)
        weighted = by_blocks(lambda x, observed: self._weigh(key, x, observed, conditional=True), rows)
        draw = partial(self._resampled, noise_key=key, rows=rows, log_weights=weighted.log_weights)
        mixing = Mixing.of_weights(weighted.log_weights, np.isnan(rows).any(axis=1))
        method = f"importance resampling of {self.n_importance} codes"
        return ConditionalParts(weighted.average, draw, method, weighted.stderr, mixing)

    @property
    def _conditional_effort(self) -> str:  # type: ignore[override]
        return "n_sweeps" if self._is_rbm else "n_importance"

    def _exact_draws(self, key: jax.Array, n: int, rows: np.ndarray) -> np.ndarray:
        def draws(x: jax.Array, observed: jax.Array | None, numbers: jax.Array) -> jax.Array:
            drawn = network.exact_draws(row_keys(key, numbers), self.params_, n, x, observed, self.columns_)
            return jnp.moveaxis(drawn, 1, 0)

        return np.moveaxis(by_blocks(draws, rows, HOLED_ROWS, row_numbers(rows)), 1, 0)

    def _resampled(self, key: jax.Array, n: int, noise_key: jax.Array, rows: np.ndarray, log_weights: np.ndarray):
        # Rows and draws go in one list and in blocks of one shape, so that one program serves any number of them.
        whose = np.arange(-(-n * len(rows) // BLOCK_ROWS) * BLOCK_ROWS) % len(rows)
        draws = []
        for number, part in enumerate(whose.reshape(-1, BLOCK_ROWS)):
            x, observed = on_device(np.nan_to_num(rows[part])), on_device(~np.isnan(rows[part]))
            own = jax.random.fold_in(key, number), noise_key, self.params_, on_device(log_weights[part])
            draws.append(np.asarray(network.resampled_rows(*own, x, observed, self.columns_)))
        return np.concatenate(draws)[: n * len(rows)].reshape(n, len(rows), -1)

    # ------------------------------------------------------------------------- codes
    def _encode(self, rows, key):
        if self._is_rbm:
            return self._answers().hidden(rows)
        return by_blocks(lambda x, observed: _codes(self.params_, x, observed, self.columns_), rows)

    def _decode(self, codes):
        return by_blocks(lambda z, _: _means(self.params_, z, self.columns_), np.asarray(codes))

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))


@eqx.filter_jit
def _codes(params, x, observed, columns):
    """Probabilities of the top layer, on a way up of probabilities."""
    below = expected_codes(params.encoder, fill(params.encoder, x, observed, columns))
    return jax.nn.sigmoid(hidden_logits(params.top, below))


@eqx.filter_jit
def _means(params, codes, columns):
    """Means of T(x) on a way down of probabilities."""
    natural = visible_natural(params.top, codes)
    for level in range(len(params.down) - 1, -1, -1):
        natural = network.natural_below(params, level, jax.nn.sigmoid(natural))
    return columns.mean(natural)
