"""Chains of conditionals: p(x) = (1/m) Σ_c Π_j p_c(x_j | the cells before j in the order of chain c).

The complete directed graph (Neal, 1992; Bengio and Bengio, 2000). The chain rule holds for any distribution, so that
the likelihood is exact with conditionals of any flexibility, and so is the mixture of several orders. Cost: that of its
conditionals, which `trees`, `boosting`, `network` and `linear` say.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

import jax
import numpy as np

from likely.columns.cells import Cells
from likely.columns.codecs.switch import Switch
from likely.contract.model import FitRun, Model
from likely.contract.settings import Count, Decay, Fraction, NonNegative, Positive, Several, Unchecked, Whole
from likely.contract.trained import EarlyStopped, GradientTrained, between
from likely.models.graphs.autoregressive import answers
from likely.models.graphs.autoregressive.boosting import BoostedChains, BoostedParams, Boosting, fit_boosting
from likely.models.graphs.autoregressive.coding import check_categories
from likely.models.graphs.autoregressive.linear import LinearChains, LinearParams, fit_linear
from likely.models.graphs.autoregressive.network import NetworkChains, first_params, fit_network
from likely.models.graphs.autoregressive.order import check_order, make_orders
from likely.models.graphs.autoregressive.trees import Growth, TreeParams, Trees, fit_trees
from likely.models.graphs.autoregressive.window import near_of
from likely.nets.mlp import Activation
from likely.training.optimisers import Schedule

CHAINS: dict[str, Any] = {
    "trees": Trees,
    "boosting": BoostedChains,
    "network": NetworkChains,
    "linear": LinearChains,
}


def switches_of(cells: Cells) -> np.ndarray:
    """(d,) the cell that switches each cell off, -1 where there is none; see `answers`."""
    out = np.full(cells.columns.n_columns, -1)
    for place, codec in enumerate(cells.codecs):
        if isinstance(codec, Switch):
            own = cells.cells_of(place)
            out[own.start + 1 : own.stop] = own.start
    return out


class Autoregressive(EarlyStopped, GradientTrained, Model):
    """Each column given those before it, in one order or several.

    Parameters
    ----------
    conditional : "trees", averages of trees with smoothed leaves; "boosting", sums of trees by scikit-learn, which find
        numbers half by half; "network", one masked network for all columns; or "linear", logistic, softmax,
        linear-Gaussian and log-linear regressions.
    n_chains : chains, each with its own order where `order` draws one; the model is their mixture.
    order : of the columns: "entropy", those of most entropy first, later chains with noise; "given", as they stand;
        "tree", from parent to child along a Chow-Liu tree; "random"; or a list of all columns by name or position.
    bins : how many bins rounded numbers and counts are cut into, at most; None goes by the rows, up to 64. More keep
        columns that hang together closely, such as longitude and latitude, true to each other in drawn rows.
    n_trees : of trees, how many are averaged in each conditional.
    min_rows : of trees and boosting, rows of a leaf, at least.
    max_depth : of trees, at most; None sets no limit, 0 makes the columns independent.
    min_gain : of trees, nats of its rows that a split must gain.
    max_features : of trees, share of the inputs, drawn anew, that each split looks at.
    max_size : of trees, bytes of all together, at most so many times those of the rows as floats, or 16 MiB.
    n_rounds, rate, max_leaves : of boosting, rounds at most, what of each round's trees is added, and leaves of a tree.
    penalty : of linear conditionals, of squared weights, in nats.
    n_hidden, n_blocks : of the network, units of a layer, and residual blocks of two layers.
    n_gaussians : of the network, components of the mixture that a real column is.
    window, n_window : of the network, for pictures in the given order: how many rows of pixels above, and columns to
        either side, are read by weights that all pixels share besides, and into how many units; 0 does without.
    dropout : of the network, share of hidden units that are left out in each step.
    activation : of the network: "gelu", "relu", "tanh" ...
    n_epochs, batch_size, learning_rate, schedule, warmup_steps, weight_decay, gradient_clip, averaging, patience,
        validate_every, memory_budget : of the network, see `likely.training.TrainingConfig`; the optimiser is Adam.
    n_importance : draws of unobserved cells for evidence and conditionals that have no closed form; cells that have at
        most so many states together are summed instead, which is exact.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> rows = digits.train[:, 20:28]
    >>> model = Autoregressive(n_chains=1, random_state=0).fit(rows)
    >>> model.evidence(rows).kind
    'exact'
    >>> model.score(digits.test[:, 20:28]) > likely.Independent().fit(rows).score(digits.test[:, 20:28])
    True
    """

    conditional: Literal["trees", "boosting", "network", "linear"] = "trees"
    _: KW_ONLY
    n_chains: Count = 4
    order: Unchecked = "entropy"
    bins: Several | None = None
    n_trees: Count = 4
    min_rows: Count = 5
    max_depth: Whole | None = None
    min_gain: NonNegative = 1.0
    max_features: Decay = 0.8
    max_size: Positive = 2.0
    n_rounds: Count = 100
    rate: Positive = 0.1
    max_leaves: Several = 31
    penalty: NonNegative = 1.0
    n_hidden: Count = 256
    n_blocks: Whole = 2
    n_gaussians: Count = 5
    window: Whole = 0
    n_window: Count = 64
    dropout: Fraction = 0.0
    activation: Activation = "gelu"
    learning_rate: Positive = 2e-3
    schedule: Schedule = "cosine"
    n_importance: Several = 1024

    _holds_rows = True
    _effort = _conditional_effort = "n_importance"
    _why_not: ClassVar[dict[str, str]] = dict.fromkeys(
        ("transform", "fit_transform", "inverse_transform", "denoise"), "its columns share no latent code"
    )

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # About a microsecond for each row, pair of columns and ten trees.
        affordable = int(3e9 / max(1, n_rows * n_columns**2))
        n_chains = between(1, affordable // 4, 4)
        return {"n_chains": n_chains, "n_trees": between(1, affordable // n_chains, 4)}

    def _cut(self):
        if self.bins is None:
            return {}
        return {at: self.bins for at, kind in enumerate(self.schema_.kinds) if kind in ("grid", "count")}

    def _init(self, key, columns):
        if self.conditional == "linear":
            return LinearParams.empty(self.n_chains, columns)
        if self.conditional == "network":
            size = (self.n_chains, self.n_hidden, self.n_blocks, self.activation, self.n_gaussians)
            return first_params(
                key, columns, *size, near_of(self.window, self.n_window, self.order, self.schema_, self.cells_)
            )
        if self.conditional == "boosting":
            return BoostedParams.empty(self.n_chains, columns.n_columns, self.sizes_)
        return TreeParams.empty(self.n_chains, columns.n_columns, self.n_trees, self.sizes_)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> Any:
        columns = self.columns_
        names = [column.name for column in self.schema_.columns]
        order = check_order(self.order, names, [column.name for column in self.schema_.left_out])
        cells = self.cells_.column_of
        check_categories(columns, [names[column] for column in cells], self.conditional)
        seed = int(jax.random.bits(key))
        orders = make_orders(order, self.n_chains, rows, columns, np.random.default_rng(seed), cells)
        if self.conditional == "linear":
            return fit_linear(rows, columns, orders, self.penalty)
        if self.conditional == "network":
            init_key, train_key = jax.random.split(key)
            config = self._training(patience=None if run.valid is None else self.patience)
            first = self._init(init_key, columns)
            result = fit_network(first, rows, orders, self.dropout, config, train_key, run)
            self.history_ = result.history
            return result.module
        params: BoostedParams | TreeParams
        if self.conditional == "boosting":
            boosting = Boosting(self.n_rounds, self.rate, self.max_leaves, self.min_rows)
            params = fit_boosting(rows, columns, orders, boosting, seed)
        else:
            limits = (self.min_rows, self.max_depth, self.min_gain, self.max_features, self.max_size)
            growth = Growth(self.n_trees, *limits)
            params = fit_trees(rows, columns, orders, growth, seed, columns.ordered)
        self.sizes_ = params.sizes
        return params

    def _chains(self) -> Any:
        return CHAINS[self.conditional](self.params_, self.columns_, switches_of(self.cells_))

    def _check_resumable(self, checkpoint, resume):
        if self.conditional != "network":  # Of the conditionals, only a network is trained step by step.
            super()._check_resumable(checkpoint, resume)

    def _evidence(self, rows, key):
        return answers.evidence(self._chains(), self.columns_, rows, key, self.n_importance)

    def _sample(self, key, n):
        return answers.sample(self._chains(), key, n)

    def _condition(self, rows, key):
        return answers.conditional(self._chains(), self.columns_, rows, key, self.n_importance)
