"""Supervised RBM: a machine over rows and their label, p(x, y) ∝ Σ_h exp(-E(x, y, h)), so p(y | x) ∝ exp(-F(x, y)).

Larochelle and Bengio (2008). The label is one more categorical column; with x given its probabilities are exact however
large the machine, as log Z cancels. Learned as any RBM, and tuned by the gradient of log p(y | x) if asked for. Cost of
a prediction: one hidden layer for each class.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from sklearn.base import clone

from likely.columns import Columns
from likely.contract.estimator import FitRun, suited
from likely.contract.model import InStandardUnits
from likely.contract.settings import NonNegative, Positive, Whole
from likely.models.energy.harmonium.answers import Exact
from likely.models.energy.harmonium.few_holes import few_holes
from likely.models.energy.harmonium.learning import ChainState, contrast, keep_scales, to_learning, to_natural
from likely.models.energy.harmonium.machine import RBMParams, hidden_logits
from likely.models.energy.harmonium.rbm import RBM, moments
from likely.models.energy.normaliser.annealed import answers_of
from likely.models.prediction.joint import JointlyFitted
from likely.runtime import by_blocks, float_dtype
from likely.schema import Column
from likely.training import Batch, TrainingConfig, train

LABEL = "label"


def label_logits(params: RBMParams, x: Float[Array, "n d"], columns: Columns) -> Float[Array, "n K"]:
    """Log of the unnormalised p(y | x) of each class; the label is the last column, and what x holds there is ignored.

    Only the part of -F(x, y) that depends on y: b_y + Σ softplus(c + Wᵀ T(x) + W_y).
    """
    seen = jnp.broadcast_to(jnp.arange(columns.n_columns) < columns.n_columns - 1, x.shape)
    places = np.flatnonzero(columns.column_of == columns.n_columns - 1)
    logits = hidden_logits(params, columns.statistics(x, seen))
    both = logits[:, None, :] + params.weights[places][None]
    return params.visible_bias[places][None] + jax.nn.softplus(both).sum(axis=-1)


def hybrid(
    params: RBMParams,
    batch: Batch,
    key: Key[Array, ""],
    state: ChainState,
    *,
    columns: Columns,
    generative_weight: float,
    n_updates: int,
) -> tuple[Array, tuple[ChainState, dict[str, Array]]]:
    """The objective of tuning: -log p(y | x), and `generative_weight` times that of contrastive divergence.

    Rows with unobserved cells count only in the second part.
    """
    x, weight = jnp.asarray(batch.x), jnp.asarray(batch.weight)
    complete = weight if batch.observed is None else weight * jnp.asarray(batch.observed).all(axis=1)
    machine = to_natural(params, columns)
    weights = jnp.where(columns.is_quadratic[:, None], 0, machine.weights)  # x² has none, and is to learn none
    logits = label_logits(eqx.tree_at(lambda p: p.weights, machine, weights), x, columns)
    log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), x[:, -1:].astype(int), axis=1)[:, 0]
    label_loss = -(complete @ log_prob) / jnp.maximum(complete.sum(), 1)
    metrics = {"label_loss": label_loss}
    if not generative_weight:
        return label_loss, (state, metrics)
    options: dict[str, Any] = {"persistent": True, "centring": False, "n_first": 1, "n_last": 1}
    loss, (state, more) = contrast(params, batch, key, state, columns=columns, n_updates=n_updates, **options)
    return label_loss + generative_weight * loss, (state, metrics | more)


_label_logits = eqx.filter_jit(label_logits)


def label_probabilities(joint: RBM, rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n K"]:
    """P(y | observed cells of x) of rows in standard units; the label, their last column, is not looked at.

    Exact for complete rows, for rows that lack a few bits, and for machines that can be enumerated; by clamped chains
    for the others.
    """
    columns, answers, key = joint.columns_, answers_of(joint), InStandardUnits(joint).key("condition")
    places = np.flatnonzero(columns.column_of == columns.n_columns - 1)
    out = np.empty((len(rows), len(places)))
    labelled = _with_label(rows, 0)
    holes = np.isnan(labelled).any(axis=1)
    few = holes & few_holes(labelled, columns) & (not isinstance(answers, Exact))
    many = holes & ~few
    if not holes.all():
        out[~holes] = _softmax(by_blocks(lambda x, _: _label_logits(joint.params_, x, columns), labelled[~holes]))
    if few.any():
        sums = [answers.log_sum(key, _with_label(rows[few], label)).low for label in range(len(places))]
        out[few] = _softmax(np.stack(sums, axis=1))
    if many.any():
        mean = np.asarray(answers.condition(key, _with_label(rows[many], np.nan)).mean, np.float64)[:, places]
        out[many] = mean / mean.sum(axis=1, keepdims=True)
    return out


class RBMClassifier(JointlyFitted):
    """A classifier by the free energy of an RBM over rows and labels.

    Parameters
    ----------
    machine : an `RBM` with the hyper-parameters of the machine, cloned; its `schema`, if any, is that of X. None takes
        `RBM()`.
    n_tuning_epochs : passes that raise log p(y | x) after the machine has learned p(x, y); 0 leaves it at that.
    tuning_rate : learning rate of Adam in them.
    generative_weight : how much of the gradient of log p(x, y) goes on in them; 0 for none.
    random_state : seed, where the machine has none of its own.

    Attributes
    ----------
    classes_ : the labels.
    joint_ : the fitted `RBM` over X and a last column "label" that holds positions in `classes_`. Its evidence is that
        of p(x, y); of p(x) for rows whose label is unobserved. It samples labelled rows, and saves them all.
    schema_ : what the columns of X are.

    Examples
    --------
    >>> from likely import Schema
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> machine = RBM(6, n_epochs=30, schema=Schema.real(13))
    >>> model = RBMClassifier(machine, n_tuning_epochs=30, tuning_rate=0.01, random_state=0)
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    machine: RBM | None = None
    _: KW_ONLY
    n_tuning_epochs: Whole = 0
    tuning_rate: Positive = 1e-3
    generative_weight: NonNegative = 0.1

    _target_kind = "class"
    _method = "free energies of the machine with each label"

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        machine = suited("RBM", n_rows, n_columns, kinds)
        return {"machine": machine, "n_tuning_epochs": machine.n_epochs // 2}

    def _unfitted(self) -> RBM:
        return RBM() if self.machine is None else clone(self.machine)

    def _target_columns(self) -> tuple[Column, ...]:
        return (replace(self.target_.schema.columns[0], name=LABEL),)

    def _fit(self, rows: np.ndarray, targets: np.ndarray, key: jax.Array, run: FitRun) -> RBMParams:
        """Learn p(x, y), then tune p(y | x) if asked for."""
        super()._fit(rows, targets, key, run)
        if self.n_tuning_epochs:
            self._tune(self._joint_rows(rows, targets))
        return self.joint_.params_

    def _log_proba(self, rows: np.ndarray, key: jax.Array) -> np.ndarray:
        """Of what is observed where a row has NaN."""
        with np.errstate(divide="ignore"):  # a class that no chain visited
            return np.log(label_probabilities(self.joint_, self._joint_rows(rows, np.zeros((len(rows), 1)))))

    def _tune(self, rows: np.ndarray) -> None:
        joint = self.joint_
        columns = joint.columns_
        zeros = jnp.zeros(columns.n_statistics, float_dtype()), jnp.zeros(joint.n_components, float_dtype())
        chains = joint.params_.chains.astype(float_dtype())
        n_updates = self.n_tuning_epochs * -(-len(rows) // joint.batch_size)
        result = train(
            to_learning(joint.params_, columns),
            partial(hybrid, columns=columns, generative_weight=float(self.generative_weight), n_updates=n_updates),
            rows,
            config=TrainingConfig(
                n_epochs=self.n_tuning_epochs,
                batch_size=joint.batch_size,
                optimizer="adam",
                learning_rate=self.tuning_rate,
                schedule="cosine",
            ),
            key=jax.random.fold_in(InStandardUnits(joint).key("fit"), 1),
            state=ChainState(chains, *zeros, moments(rows, columns)[1], jnp.zeros((), jnp.int32)),
            project=partial(keep_scales, columns=columns) if columns.is_quadratic.any() else None,
            label="tuning",
        )
        params = to_natural(result.module, columns)
        joint.params_ = eqx.tree_at(lambda p: p.chains, params, result.state.chains.astype(bool))
        self.history_ = joint.history_ | {f"tuning_{name}": curve for name, curve in result.history.items()}
        stages: Any = {"learning": joint.history_, "tuning": result.history}
        joint.history_ = stages


def _with_label(rows: np.ndarray, label: float) -> np.ndarray:
    return np.concatenate([rows[:, :-1], np.full_like(rows[:, -1:], label)], axis=1)


def _softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)
