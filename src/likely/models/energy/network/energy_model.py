"""Energy model: p(x) = exp(-E(x)) / Z with any network or function as E, for columns of any kind.

LeCun et al. (2006). E(x) = network(x) - log ρ(x), ρ independent columns as in the data, which keeps the density
normalisable; or E(x) = network(x) alone. Learned by objectives that do without Z: noise contrast, contrastive
divergence, score matching, pseudo-likelihood, ratio matching. Cost of a step: 1 + `n_noise` network gradients a row for
noise contrast; `n_steps` moves of a few gradients each for contrastive divergence; one for each column for exact score
matching and pseudo-likelihood. The evidence is exact for up to 2^20 possible rows, else an interval by annealing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from likely.columns import natural_of
from likely.contract.model import FitRun
from likely.contract.settings import Count, NonNegative, Positive, Sizes, Unchecked, are_sizes, one_of
from likely.contract.trained import GradientTrained, epochs_for
from likely.models.energy.network import annealing
from likely.models.energy.network.answers import Exact, Sampled
from likely.models.energy.network.enumeration import enumerable
from likely.models.energy.network.function import (
    EnergyParams,
    Given,
    Kind,
    check_finite,
    check_network,
    draw_reference,
    energies,
    first_params,
    first_perceptron,
)
from likely.models.energy.network.learning import OBJECTIVES, LearningState, Options, learn
from likely.models.energy.network.moves import step_sizes
from likely.models.energy.network.noise import make_noise
from likely.models.energy.normaliser.annealed import Annealed
from likely.models.energy.normaliser.log_sum import evidence_of_sums
from likely.nets import encoder_features
from likely.nets.column_interface import spread_locations
from likely.nets.mlp import Activation
from likely.runtime import by_blocks, float_dtype, has_holes, on_device, sum_blocks
from likely.schema import SchemaError
from likely.training import train
from likely.training.optimisers import Schedule, SteppedOptimizer


class EnergyModel(GradientTrained, Annealed):
    """Any network as an energy, trained without its normaliser.

    Parameters
    ----------
    network : None or "mlp" for the built-in perceptron; or an Equinox module or a function that takes one row, an array
        of the columns in standard units (one-hot for categorical ones, log(1 + x) for counts), and returns its energy.
    objective : "nce" noise contrast, "pcd" and "cd" contrastive divergence, for any columns; "score_matching",
        "sliced" and "denoising" score matching for real columns; "pseudo_likelihood" and "ratio_matching" for binary.
    base : add -log ρ(x) to the network's energy, ρ the columns' own distributions as if independent.
    hidden, activation : of the built-in network.
    noise : of "nce": "independent", "mixture", "factor_analysis"; an `Independent`, `Mixture` or `FactorAnalysis`,
        fitted or not; or a pair of functions sample(key, n), log_prob(rows) in standard units.
    n_noise : noise rows for each row, of "nce".
    n_chains, n_steps : chains and moves an update, of "pcd" and "cd".
    n_slices : random directions a row, of "sliced". noise_scale : in standard units, of "denoising".
    n_cells : cells a step of "pseudo_likelihood" and "ratio_matching"; None takes all.
    n_epochs, batch_size, optimizer, learning_rate, schedule, warmup_steps, weight_decay, gradient_clip, averaging,
        memory_budget : see `likely.training.TrainingConfig`.
    n_temperatures, n_ais_chains : of annealed importance sampling, where log Z cannot be enumerated.
    n_sweeps : moves of a chain after it has been annealed, before a sample or a conditional is taken.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Attributes
    ----------
    log_partition_nce_ : log Z as "nce" learned it, to be set against `log_partition()`; None for other objectives.

    Notes
    -----
    Unobserved cells of training rows are drawn anew at every use, by importance resampling from independent columns. A
    model with a network of yours cannot be saved: a file holds no code. Keep `params_` with
    `equinox.tree_serialise_leaves`.

    Examples
    --------
    Two moons, which no independent columns can draw:

    >>> import likely
    >>> from sklearn.datasets import make_moons
    >>> rows = make_moons(1000, noise=0.1, random_state=0)[0]
    >>> model = EnergyModel(hidden=(32, 32), n_epochs=30, n_temperatures=200, random_state=0).fit(rows)
    >>> model.score(rows) - likely.Independent().fit(rows).score(rows) > 0.3
    True
    """

    network: Literal["mlp"] | Callable | None = None
    _: KW_ONLY
    objective: Annotated[str, one_of(OBJECTIVES)] = "nce"
    base: bool = True
    hidden: Sizes = (64, 64)
    activation: Activation = "swish"
    noise: Unchecked = "independent"
    n_noise: Count = 10
    n_chains: Count = 100
    n_steps: Count = 10
    n_slices: Count = 1
    noise_scale: Positive = 0.1
    n_cells: Count | None = None
    n_epochs: Count = 200
    optimizer: SteppedOptimizer = "adam"
    learning_rate: Positive | None = 5e-3
    schedule: Schedule = "cosine"
    weight_decay: NonNegative = 0.2
    gradient_clip: Positive | None = 10.0
    n_temperatures: Count = 500

    _resumable = True
    _why_not: ClassVar[dict] = {
        "transform": "an energy has no code",
        "fit_transform": "an energy has no code",
        "inverse_transform": "an energy has no code",
        "denoise": "it sees a row through no code; erase the cells that are in doubt and impute them",
    }

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # A network learns rows of mixed columns by heart within ten thousands of visits: on wine and on a table of
        # loans 20,000 leave 2 and 8 nats more of the validation rows than 200 epochs. On digits 200 epochs are best.
        return {} if kinds == {"binary"} else {"n_epochs": epochs_for(20_000, n_rows)}

    @property
    def _kind(self) -> Kind:
        return Kind(self.columns_, bool(self.base))

    def _init(self, key, columns):
        if self.network is None or self.network == "mlp":
            hidden = tuple(int(size) for size in self.hidden)
            return first_params(_first_perceptron(key, columns, hidden, self.activation), columns)
        return first_params(Given.of(self.network), columns)

    # ------------------------------------------------------------------------- learning
    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> EnergyParams:
        self._check()
        init_key, noise_key, chain_key, train_key = jax.random.split(key, 4)
        params = self._first(init_key, rows)
        check_finite(params, rows, self._kind)
        noise = None
        if self.objective == "nce":
            noise = make_noise(self.noise, rows, params.reference, self.schema_, self.cells_, noise_key)
        chains = draw_reference(chain_key, params, self.n_chains, self._kind) if self.objective == "pcd" else None
        result = train(
            params,
            partial(learn, kind=self._kind, options=Options(**{name: getattr(self, name) for name in Options._fields})),
            rows,
            config=self._training(),
            key=train_key,
            state=LearningState(noise, chains, params.log_steps),
            checkpoint=run.checkpoint,
            resume=run.resume,
            label="EnergyModel",
        )
        self.history_ = result.history
        params = result.module
        check_finite(params, rows, self._kind)
        self.log_partition_nce_ = -float(params.constant) if self.objective == "nce" else None
        return params

    def _check(self) -> None:
        """What involves the data and the hyper-parameters together."""
        needed = OBJECTIVES[self.objective]
        others = [i for i, kind in enumerate(self.columns_.kinds) if kind != needed]
        if needed and others:
            column = self.schema_.columns[int(self.cells_.column_of[others[0]])]
            name, kind = column.name, column.kind
            raise SchemaError(
                f"objective={self.objective!r} is for {needed} columns, and column {name!r} is {kind}: drop it, or use "
                "objective='nce', 'pcd' or 'cd', which are for any columns."
            )
        if not are_sizes(self.hidden):
            raise ValueError(f"`hidden` must be sizes of layers, each at least 1, whole numbers, got {self.hidden!r}.")
        if callable(self.network):
            check_network(self.network, self.columns_)
            arrays = eqx.filter(self.network, eqx.is_inexact_array)
            if not jax.tree.leaves(arrays) and self.objective != "nce":
                raise ValueError(
                    "`network` has no floating-point arrays, so nothing can be learned of it: give an Equinox module, "
                    "or objective='nce', which still learns log Z."
                )

    def _first(self, key: jax.Array, rows: np.ndarray) -> EnergyParams:
        """Parameters before training: ρ from the rows, one row of ignorance among them, and the network centred."""
        columns = self.columns_
        statistics, features, weight = sum_blocks(partial(_totals, columns=columns), rows)
        mean = (statistics + columns.ignorance) / (columns.spread(weight) + 1)
        params = self._init(key, columns)
        steps = on_device(step_sizes(columns.kinds), float_dtype())
        natural = natural_of(on_device(mean, float_dtype()), columns, 1e-4)
        params = eqx.tree_at(lambda p: (p.reference, p.log_steps), params, (natural, steps))
        if callable(self.network):
            return params
        offset = features / np.maximum(spread_locations(columns, weight), 1)
        return eqx.tree_at(lambda p: p.network.offset, params, on_device(offset, float_dtype()))

    # ------------------------------------------------------------------------- answers
    def _answers(self) -> Exact | Sampled:
        """Exact answers where all rows can be counted; else by chains, whose steps are tuned when first needed."""
        if enumerable(self.columns_):
            return Exact(self.params_, self._kind)
        kept = self.__dict__.get("_tuned")
        if kept is None or kept[0] is not self.params_:
            begin, go = jax.random.split(self._key("sample"))
            drawn = annealing.starts(begin, self.params_, annealing.TUNING_CHAINS, self._kind)
            log_steps = annealing.tune(go, self.params_, drawn, self._kind)
            tuned = eqx.tree_at(lambda p: p.log_steps, self.params_, log_steps)
            kept = self._tuned = (self.params_, tuned)
        return Sampled(kept[1], self._kind, self._ais_settings())

    def energy(self, X: Any) -> np.ndarray:
        """(n_rows,) E(x) of complete rows, in standard units: log p(x) = -E(x) - log Z there."""
        _, rows = self._rows(X)
        if has_holes(rows):
            raise ValueError("an energy is a function of all cells: impute the NaN cells, or ask for the evidence.")
        return by_blocks(lambda x, _: energies(self.params_, x, self._kind), rows)

    def _evidence(self, rows, key):
        check_finite(self.params_, rows, self._kind)
        answers = self._answers()
        return evidence_of_sums(answers.log_sum(key, rows), self.log_partition(), rows, answers.method)

    def _sample(self, key, n):
        return self._drawn(self._answers().sample(key, n))

    def _condition(self, rows, key):
        return self._answers().condition(key, rows)


_first_perceptron = eqx.filter_jit(first_perceptron)  # one program in place of many small ones


@eqx.filter_jit
def _totals(x, observed, weight, columns):
    """Sums of statistics and features over rows, and the weight behind each column."""
    seen = jnp.ones_like(x) if observed is None else observed.astype(x.dtype)
    features = encoder_features(columns, x, observed)
    return weight @ columns.statistics(x, observed), weight @ features, weight @ seen
