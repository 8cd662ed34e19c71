"""A network as a predictor: p(y | x) with parameters f(x; w), of one target or several; and what is known of w.

Murphy (2023), chapter 17; dropout as a posterior by Gal and Ghahramani (2016), ensembles by Lakshminarayanan et al.
(2017), Laplace's approximation by MacKay (1992). Cost of an epoch: 6 × rows × weights floating-point operations.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.contract.estimator import Arrays, FitRun
from likely.contract.evidence import Evidence
from likely.contract.settings import Count, Fraction, NonNegative, Positive, Several, Sizes, are_sizes
from likely.contract.trained import GradientTrained, HeldOut, between, epochs_for
from likely.models.prediction.conditional.companion import GaussianInputs, paired_noise, versions_of
from likely.models.prediction.conditional.feature_predictor import FeaturePredictor, has_holes
from likely.models.prediction.conditional.laws import Laws
from likely.models.prediction.network import laplace
from likely.models.prediction.network.inputs import Embedding, first_inputs
from likely.models.prediction.network.network import (
    Network,
    first_network,
    laws_of,
    loss,
    output_slices,
    validation_loss,
)
from likely.nets.mlp import Activation
from likely.runtime import float_dtype, on_device
from likely.storage.modules import restore_module
from likely.training import train
from likely.training.optimisers import Schedule

_N_COPIES = 4  # of the rows where some have holes, each copy with other draws in them
_POSTERIOR = 4  # fold of the key of draws of the weights


class Learned(eqx.Module):
    """Networks, one or several; a root of the posterior's covariance, and log p(y) of the rows, by Laplace or empty."""

    members: tuple[Network, ...]
    root: Any
    log_marginal: Any


class NetworkPredictor(HeldOut, GradientTrained, FeaturePredictor):
    """A perceptron, or convolutions and a perceptron, that says the distribution of one column or several.

    Parameters
    ----------
    hidden : sizes of the hidden layers. activation : between them.
    channels : filters of convolutions of stride 2 before the perceptron, for rows that are pictures; () for none.
    embedding : how numbers are read: "none", as they are; "piecewise", along `n_parts` bins of their column;
        "periodic", as waves of `n_parts` learned frequencies. Categories always have vectors.
    n_parts, embedding_size : of such an embedding, and numbers that it hands on for each column.
    dropout : share of the hidden units that a step leaves out.
    posterior : "point", the weights that were learned; "dropout", the average over units left out at random;
        "ensemble", over `n_members` networks of other first weights; "laplace", over draws of a Gaussian of weights.
    n_members : of an ensemble.
    n_samples : draws of units or weights for "dropout" and "laplace".
    curvature : of "laplace", over the weights of the "last" layer, or the "full" set, of small networks.
    missing : "companion", unobserved inputs by draws of a density; "mask", the network itself reads which are there.
    hidden_share : of "mask", the share of the inputs that each step hides besides, so that it learns to do without.
    batch_size : rows a step; fewer of a small table, so that an epoch still has about twenty steps.
    n_epochs, learning_rate, schedule, warmup_steps, weight_decay, gradient_clip, averaging, memory_budget :
        of the training, see `likely.training.TrainingConfig`; None makes epochs by the number of rows.
    patience, validate_every, held_out : early stopping, by `valid` rows, or by a share of the rows that is held out.
    target_kind, companion, n_draws : as in `LinearPredictor`.
    schema : what the columns of X are; None reads it off the data.
    random_state : seed.

    Attributes
    ----------
    params_ : the networks, and the posterior's root. history_ : learning curves, of the first network.
    marginal_likelihood_ : of "laplace", an estimate of log p(y | x) of all rows of the fit together.
    classes_ : the classes, in order, where y is of one column of classes.

    Notes
    -----
    Evidence is exact for "point" and "ensemble", which are what they are; for "dropout" and rows with holes a lower
    bound in expectation, with its Monte Carlo error; for "laplace" an estimate. y may have several columns, some of
    whose cells are missing.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = NetworkPredictor((16,), n_epochs=60, random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    hidden: Sizes = (128, 128)
    _: KW_ONLY
    activation: Activation = "relu"
    channels: Sizes = ()
    embedding: Embedding = "none"
    n_parts: Several = 16
    embedding_size: Count = 8
    dropout: Fraction = 0.1
    posterior: Literal["point", "dropout", "ensemble", "laplace"] = "point"
    n_members: Several = 5
    n_samples: Several = 64
    curvature: Literal["last", "full"] = "last"
    missing: Literal["companion", "mask"] = "companion"
    hidden_share: Fraction = 0.15
    batch_size: Count = 128
    learning_rate: Positive | None = 2e-3
    schedule: Schedule = "cosine"
    weight_decay: NonNegative = 1e-4

    _several = True
    _uses_unlabelled = True
    _resumable = True

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        return {"hidden": (between(32, 4 * n_columns, 128),) * 2, "n_epochs": epochs_for(400_000, n_rows)}

    # ---------------------------------------------------------------- learning
    def _check(self) -> None:
        super()._check()
        for name in ("hidden", "channels"):
            if not are_sizes(getattr(self, name)):
                raise ValueError(f"`{name}` must hold whole numbers of at least 1, got {getattr(self, name)!r}.")
        if self.posterior == "dropout" and (not self.dropout or not self.hidden):
            raise ValueError("posterior='dropout' needs `dropout` above 0 and hidden layers: set them.")
        if self.posterior == "laplace" and self.missing == "mask":
            raise ValueError("posterior='laplace' needs complete inputs: leave missing='companion'.")
        self._training(n_epochs=1, patience=None)

    def _check_image(self) -> tuple[int, ...] | None:
        shape = self.schema_.image_shape
        if self.channels and shape is None:
            raise ValueError("`channels` are for pictures, and these rows are none: give a schema with an image_shape.")
        if self.channels and self.embedding != "none":
            raise ValueError("`channels` read pixels as they are: leave embedding='none'.")
        return shape

    def _gaussian_inputs(self, rows: np.ndarray, key: jax.Array, weight: np.ndarray | None) -> GaussianInputs:
        if self.missing == "mask":  # nothing is drawn
            return GaussianInputs(np.zeros(1), np.eye(1))
        return super()._gaussian_inputs(rows, key, weight)

    def _learn(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array, run: FitRun) -> Learned:
        self._check_image()
        taught = ~np.isnan(targets).all(axis=1)
        table = self._table(rows[taught], targets[taught])
        # Copies stand one below the other: a row that is held out is so in all of them.
        held_in, own = self._divided(table, key, replace(run, valid=self._valid_table(run.valid)))
        own = replace(own, valid=None if own.valid is None else _unrolled(own.valid, self._width))
        data = _unrolled(held_in, self._width)
        n_members = self.n_members if self.posterior == "ensemble" else 1
        members = [self._trained(data, jax.random.fold_in(key, i), run, own, i) for i in range(n_members)]
        return self._with_posterior(tuple(members), data, held_in.shape[1] // self._width)

    @property
    def _width(self) -> int:
        """Columns of a row of the training loop: its features, and its targets."""
        return len(self._features(np.zeros((1, self.schema_.n_columns)))[0]) + self.target_.columns.n_columns

    def _table(self, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """(n, copies × width) features and targets; several copies of each row where cells are drawn."""
        x = self._features(rows)
        if self.missing == "mask" or not has_holes(x):
            return np.hstack([x, targets]).astype(float_dtype())
        copies = np.repeat(x[:, None], _N_COPIES, axis=1)
        for place in np.flatnonzero(np.isnan(x).any(axis=1)):
            copies[place] = self._completions(rows[place], _N_COPIES)
        both = np.concatenate([copies, np.repeat(targets[:, None], _N_COPIES, axis=1)], axis=2)
        return both.reshape(len(x), -1).astype(float_dtype())

    def _valid_table(self, valid: Any) -> np.ndarray | None:
        return None if valid is None else self._table(*valid)

    def _trained(self, data: np.ndarray, key: jax.Array, given: FitRun, run: FitRun, number: int) -> Network:
        start, steps = jax.random.split(key)
        columns = self.target_.columns
        n_features = data.shape[1] - columns.n_columns
        result = train(
            self._network(start, data[:, :n_features]),
            partial(loss, columns=columns, dropout=float(self.dropout), hidden_share=float(self.hidden_share)),
            data,
            config=self._training(batch_size=self._rows_a_step(len(data)), **self._stopping(given, run, len(data))),
            key=steps,
            validate=None if run.valid is None else partial(validation_loss, columns=columns),
            valid_rows=run.valid,
            checkpoint=run.checkpoint if number == 0 else None,
            resume=run.resume if number == 0 else None,
            label=f"NetworkPredictor {number + 1}" if self.posterior == "ensemble" else "NetworkPredictor",
        )
        if number == 0:
            self.history_ = self._with_held_out(result.history, given, run)
        return result.module

    def _rows_a_step(self, n_rows: int) -> int:
        """At most `batch_size`, and of few rows so many that an epoch still has about twenty steps."""
        return min(self.batch_size, max(16, n_rows // 20))

    def _network(self, key: jax.Array, x: np.ndarray | None) -> Network:
        reading, body = jax.random.split(key)
        inputs = first_inputs(
            reading,
            self.columns_,
            x,
            kind=self.embedding,
            n_parts=self.n_parts,
            size=self.embedding_size,
            masked=self.missing == "mask",
        )
        return first_network(
            body,
            inputs,
            output_slices(self.target_.columns)[-1].stop,
            hidden=tuple(self.hidden),
            activation=self.activation,
            channels=tuple(self.channels),
            image_shape=self.schema_.image_shape,
        )

    def _with_posterior(self, members: tuple[Network, ...], data: np.ndarray, n_copies: int) -> Learned:
        nothing = jnp.zeros((0, 0), float_dtype()), jnp.zeros((0,), float_dtype())
        if self.posterior != "laplace":
            return Learned(members, *nothing)
        size = laplace.n_weights(members[0], self.curvature)
        if size > laplace.MAX_WEIGHTS:
            raise ValueError(
                f"posterior='laplace' with curvature={self.curvature!r} has {size} weights, and at most "
                f"{laplace.MAX_WEIGHTS} are taken: use curvature='last' or smaller layers."
            )
        n = data.shape[1] - self.target_.columns.n_columns
        x, y = data[:, :n], data[:, n:]
        root, log_p = laplace.posterior(members[0], self.curvature, self.target_.columns, x, y, 1 / n_copies)
        log_p += float(self.target_.scaling.log_jacobian(~np.isnan(y)).sum()) / n_copies
        return Learned(members, on_device(root, float_dtype()), on_device(np.atleast_1d(log_p), float_dtype()))

    # ------------------------------------------------------------------- using
    def _laws(self, x: np.ndarray) -> Laws:
        columns = self.target_.columns
        x = np.asarray(x, float_dtype())
        net = self.params_.members[0]
        if self.posterior == "laplace":
            outputs = laplace.linearised(net, self.curvature, self._moves(), x)
            return laws_of(columns, outputs, versions_of(len(outputs)), is_exact=False)
        observed = None if self.missing == "companion" else on_device(~np.isnan(x))
        given = on_device(np.nan_to_num(x))
        if self.posterior == "dropout":
            keys = jax.random.split(jax.random.fold_in(self._key("predict"), _POSTERIOR), self.n_samples)
            outputs = _thinned(net, given, observed, keys, float(self.dropout))
            return laws_of(columns, np.asarray(outputs), versions_of(self.n_samples), is_exact=False, is_lower=True)
        each = [np.asarray(_outputs(member, given, observed)) for member in self.params_.members]
        return laws_of(columns, np.stack(each), None, is_exact=True)

    def _moves(self) -> np.ndarray:
        """(s, q) draws of the weights, less what was learned, in pairs; the same for every row."""
        root = np.asarray(self.params_.root)
        key = jax.random.fold_in(self._key("predict"), _POSTERIOR)
        return paired_noise(key, self.n_samples, root.shape[1]) @ root.T

    def _holed(self, rows: np.ndarray) -> np.ndarray:
        if self.missing == "mask":
            return np.zeros(len(rows), dtype=bool)
        return super()._holed(rows)

    def _how(self) -> str:
        return {
            "point": "network",
            "dropout": f"network, {self.n_samples} draws of dropout",
            "ensemble": f"average of {self.n_members} networks",
            "laplace": f"network, Laplace approximation ({self.curvature}), {self.n_samples} draws",
        }[self.posterior] + (", which reads what is missing" if self.missing == "mask" else "")

    @property
    def marginal_likelihood_(self) -> Evidence:
        """log p(y | x) of all rows of the fit that were learned from, together: an estimate."""
        check_is_fitted(self)
        if self.posterior != "laplace":
            return Evidence.unavailable(1, "only posterior='laplace' integrates weights out: use that.")
        measure = self.target_.schema.measure.conditional(self.target_.name)
        return Evidence.estimate(
            np.asarray(self.params_.log_marginal), method=f"{self._how()}, all rows", measure=measure
        )

    # ------------------------------------------------------------------- files
    def _params_from(self, arrays: Arrays) -> Learned:
        n_members = self.n_members if self.posterior == "ensemble" else 1
        nets = tuple(jax.eval_shape(lambda: self._network(jax.random.key(0), None)) for _ in range(n_members))
        extra = {name: jax.ShapeDtypeStruct(arrays[f".{name}"].shape, np.float32) for name in ("root", "log_marginal")}
        return restore_module(Learned(nets, extra["root"], extra["log_marginal"]), arrays)


_outputs = eqx.filter_jit(lambda net, x, observed: net(x, observed))
_thinned = eqx.filter_jit(
    lambda net, x, observed, keys, dropout: jax.vmap(lambda key: net.thinned(x, observed, key, dropout))(keys)
)


def _unrolled(table: np.ndarray, width: int) -> np.ndarray:
    """Copies of rows, beside each other, as rows."""
    return np.ascontiguousarray(table.reshape(-1, width))
