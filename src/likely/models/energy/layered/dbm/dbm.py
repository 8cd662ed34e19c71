"""Deep Boltzmann machine: p(x, h1, ..., hL) ∝ exp(b·T(x) + T(x)ᵀW1 h1 + h1ᵀW2 h2 + ... + Σ c_l·h_l), h_l binary.

Salakhutdinov and Hinton (2009); centring in place of pretraining after Montavon and Müller (2012). Cost of an epoch:
that of an RBM on the lowest layer, and 6 + 2 n_mean_field products with the weights above. The evidence is exact where
one half of the layers can be enumerated; beyond, a lower bound on the row's sum minus an estimate of log Z.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, Literal, cast

import equinox as eqx
import jax
import numpy as np

from likely.columns import natural_of
from likely.contract.model import FitRun
from likely.contract.settings import Count, Positive, Several, Sizes
from likely.contract.trained import NARROW, between, epochs_for
from likely.models.energy.harmonium.answers import Exact, Sampled, answers
from likely.models.energy.harmonium.learning import keep_scales, to_learning, to_natural
from likely.models.energy.harmonium.rbm import moments
from likely.models.energy.layered import machine
from likely.models.energy.layered.dbm.start import beginning, pretrained
from likely.models.energy.layered.layered_model import LayeredModel
from likely.models.energy.layered.learning import LayeredState, layered_contrast
from likely.models.energy.layered.machine import LayeredParams
from likely.models.energy.layered.stages import Stages, check_layers, steps_rate
from likely.models.energy.normaliser.log_sum import evidence_of_bounds, evidence_of_sums
from likely.runtime import by_blocks, has_holes

# Steps of mean field behind evidence and codes, where each row is asked for once and not in every update: three times
# those of learning by default. The bound rises with every step, so stopping early costs a little of it and no truth.
_MEAN_FIELD_STEPS = 30


class DBM(LayeredModel):
    """Deep Boltzmann machine with layers of binary hidden units and visible units of any columns.

    Parameters
    ----------
    layers : sizes of the hidden layers, from below.
    pretraining : True learns the layers one by one as RBMs with doubled weights, then all together; "lowest" learns the
        lowest as a plain RBM and starts the others near zero, where the machine is that RBM; False starts near zero.
        From rows with unobserved cells True does what "lowest" does.
    centring : measure units from their means in the gradient; with it, learning works without pretraining.
    n_mean_field : steps of mean field for each batch.
    n_gibbs_steps, n_chains : sweeps of the persistent chains an update, and how many there are. They are kept with the
        model: samples start from them.
    n_epochs, learning_rate : of the joint learning. A rate of None is 0.1 for binary and categorical columns, 0.05
        where a column's statistics are unbounded; with another optimizer than "sgd", that one's own default.
    n_pretraining_epochs, pretraining_rate : of each layer's pretraining; None takes those of the joint learning.
    batch_size, optimizer, schedule, warmup_steps, weight_decay, gradient_clip, averaging, memory_budget : see
        `likely.training.TrainingConfig`; of each stage of learning.
    n_importance : samples from the mean field that tighten a row's bound; None for the plain variational bound.
    n_temperatures, n_ais_chains : of annealed importance sampling, where log Z cannot be enumerated.
    n_sweeps : Gibbs sweeps before a sample or a conditional is taken, where they cannot be drawn exactly.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Notes
    -----
    Beyond enumeration a row's log Σ exp(-E) is bounded from below, unobserved cells and even layers summed out given
    the odd ones, and log Z is estimated by annealed importance sampling. `Evidence.lower` takes log Z from the reverse
    run, which is high on average: it is the bound. `values` take it from the forward run, which is low on average, and
    are that bound but for log Z's error; above there is no limit.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> model = likely.DBM((16, 8), n_epochs=5, random_state=0).fit(digits.train)
    >>> model.evidence(digits.test).kind
    'exact'
    """

    layers: Sizes = (64, 32)
    _: KW_ONLY
    pretraining: bool | Literal["lowest"] = True
    n_mean_field: Count = 10
    n_pretraining_epochs: Count | None = None
    pretraining_rate: Positive | None = None
    n_importance: Several | None = 64

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        width = between(16, n_columns, 256)
        if n_columns <= NARROW:
            fewer = {"n_epochs": epochs_for(50_000, n_rows), "n_temperatures": 300}
            return {"layers": (width, width), "batch_size": 50} | fewer
        return {"layers": (width, width), "n_epochs": epochs_for(100_000, n_rows), "batch_size": 50}

    def _init(self, key, columns):
        return beginning(key, columns, tuple(self.layers), self.n_chains)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> LayeredParams:
        check_layers(self.layers)
        columns, mode = self.columns_, self._mode(holes=has_holes(rows))
        init_key, pre_key, train_key = jax.random.split(key, 3)
        n_levels = {"doubled": len(self.layers), "lowest": 1, "none": 0}[mode]
        stages = Stages(run, n_levels + 1)
        rate = steps_rate(self, columns, bounded=0.1)
        mean, variance = moments(rows, columns)
        params = self._init(init_key, columns)
        params = eqx.tree_at(lambda p: p.visible_bias, params, natural_of(mean, columns, 1e-4))
        params, offsets = pretrained(
            pre_key,
            stages,
            params,
            rows,
            mode=mode,
            columns=columns,
            moments=(mean, variance),
            config=self._training(
                n_epochs=self.n_pretraining_epochs or self.n_epochs,
                learning_rate=self.pretraining_rate or rate,
            ),
            centring=self.centring,
            n_gibbs_steps=self.n_gibbs_steps,
        )
        chains = tuple(c.astype(mean.dtype) for c in params.chains)
        params = self._learned(train_key, stages, params, rows, LayeredState(chains, offsets, variance), rate)
        self.history_ = stages.history
        return params

    def _learned(self, key, stages, params, rows, state, rate) -> LayeredParams:
        """All layers together, from where the pretraining left them."""
        columns = self.columns_
        result = stages.train(
            to_learning(cast(Any, params), columns),
            partial(
                layered_contrast,
                columns=columns,
                centring=self.centring,
                n_mean_field=self.n_mean_field,
                n_gibbs_steps=self.n_gibbs_steps,
            ),
            rows,
            config=self._training(n_epochs=self.n_epochs, learning_rate=rate),
            key=key,
            state=state,
            project=partial(keep_scales, columns=columns) if columns.is_quadratic.any() else None,
            label="DBM",
        )
        chains = tuple(c.astype(bool) for c in result.state.chains)
        return eqx.tree_at(lambda p: p.chains, to_natural(result.module, columns), chains)

    def _mode(self, holes: bool) -> str:
        if len(self.layers) == 1 or self.pretraining is False:
            return "none"
        # A machine with two copies of x also learns that they are equal. Where half of a row binds its hidden units,
        # these are free to do just that: its weights grow without end, and the machine is worse than none.
        return "lowest" if self.pretraining == "lowest" or holes else "doubled"

    # --------------------------------------------------------------------- evidence
    def _answers(self) -> Exact | Sampled:
        """What the machine answers as a harmonium between the even layers and the odd ones."""
        view, extended = machine.bipartite(self.params_, self.columns_)
        return answers(view, extended, self._ais_settings())

    def _evidence(self, rows, key):
        answers, log_z = self._answers(), self.log_partition()
        if isinstance(answers, Exact):
            return evidence_of_sums(answers.log_sum(key, self._extended(rows)), log_z, rows, answers.method)
        bounds, replicates = by_blocks(lambda x, observed: self._bounds(jax.random.fold_in(key, 1), x, observed), rows)
        how = "mean field" if self.n_importance is None else f"{self.n_importance} samples of the mean field"
        return evidence_of_bounds(bounds, replicates, log_z, rows, f"bound by {how}; log Z by {answers.method}")

    def _bounds(self, key: jax.Array, x: jax.Array, observed: jax.Array | None) -> Any:
        return _row_bounds(key, self.params_, x, observed, self.columns_, self.n_importance)

    def _extended(self, rows: np.ndarray) -> np.ndarray:
        """Rows with the bits of the even hidden layers, all unobserved."""
        n = sum(int(size) for size in self.layers[1::2])
        return np.hstack([rows, np.full((len(rows), n), np.nan, rows.dtype)])

    def _sample(self, key, n):
        return self._drawn(self._answers().sample(key, n)[:, : self.columns_.n_columns])

    def _condition(self, rows, key):
        answers = self._answers()
        own, _ = machine.places(self.columns_, answers.columns)
        return answers.condition(key, self._extended(rows)).restricted(own, np.arange(self.columns_.n_columns))

    # ------------------------------------------------------------------------- codes
    def _encode(self, rows, key):
        return by_blocks(lambda x, observed: _codes(self.params_, x, observed, self.columns_)[0], rows)

    def _decode(self, codes):
        return by_blocks(lambda z, _: _from_top(self.params_, z, self.columns_), codes)

    def _reconstruct(self, rows, key):
        return by_blocks(lambda x, observed: _codes(self.params_, x, observed, self.columns_)[1], rows)


@eqx.filter_jit
def _row_bounds(key, params, x, observed, columns, n_importance):
    """Lower bounds of log Σ exp(-E) of rows (n,), and their replicates (n, r), or None where nothing is random."""
    _, logits = machine.mean_field(params, x, observed, columns, _MEAN_FIELD_STEPS)
    if n_importance is None:
        return machine.bound(params, x, observed, columns, logits), None
    weighted = machine.importance_bound(key, params, x, observed, columns, logits, n_importance)
    return weighted.log_mean, weighted.replicates


@eqx.filter_jit
def _codes(params, x, observed, columns):
    """Means of the top layer, and of T(x) given those of the lowest."""
    even, logits = machine.mean_field(params, x, observed, columns, _MEAN_FIELD_STEPS)
    odd = tuple(jax.nn.sigmoid(a) for a in logits)
    top = odd[-1] if params.n_layers % 2 == 1 else even[-1]
    return top, columns.mean(machine.even_inputs(params, odd)[0])


@eqx.filter_jit
def _from_top(params, top, columns):
    return machine.from_top(params, top, columns, _MEAN_FIELD_STEPS)
