"""Supervised RBM: a machine over rows and their label, p(x, y) ∝ Σ_h exp(-E(x, y, h)), so p(y | x) ∝ exp(-F(x, y)).

Larochelle and Bengio (2008). The label is one more categorical column; with x given its probabilities are exact however
large the machine, as log Z cancels. Learned as any RBM, and tuned by the gradient of log p(y | x) if asked for. Cost of
a prediction: one hidden layer for each class.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from likely.columns import Columns
from likely.contract.scikit_learn import ClassifierMixin
from likely.contract.settings import NonNegative, Positive, Whole
from likely.contract.table_estimator import TableEstimator
from likely.models.energy.harmonium.answers import Exact
from likely.models.energy.harmonium.few_holes import few_holes
from likely.models.energy.harmonium.learning import ChainState, contrast, keep_scales, to_learning, to_natural
from likely.models.energy.harmonium.machine import RBMParams, hidden_logits
from likely.models.energy.harmonium.rbm import RBM, moments
from likely.runtime import by_blocks, float_dtype
from likely.schema import Column, Schema, SchemaError, as_frame
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
    columns, answers, key = joint.columns_, joint._answers(), joint._key("condition")
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


class RBMClassifier(ClassifierMixin, TableEstimator):
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
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = RBMClassifier(RBM(6, n_epochs=30), n_tuning_epochs=30, tuning_rate=0.01, random_state=0)
    >>> model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    machine: RBM | None = None
    _: KW_ONLY
    n_tuning_epochs: Whole = 0
    tuning_rate: Positive = 1e-3
    generative_weight: NonNegative = 0.1

    def fit(self, X: Any, y: Any) -> RBMClassifier:
        """Learn p(x, y), then tune p(y | x) if asked for; NaN cells of X are unobserved."""
        self._validate_params()
        if self.machine is not None:
            self.machine._validate_params()
        X, codes = self._checked(X, reset=True), self._codes(y)
        if len(codes) != len(X):
            raise ValueError(f"X has {len(X)} rows and y {len(codes)} labels: they must be as many.")
        machine = RBM() if self.machine is None else clone(self.machine)
        self.schema_ = Schema.infer(X) if machine.schema is None else machine.schema
        if LABEL in self.schema_.names:
            raise SchemaError(f"a column of X is called {LABEL!r}, as the label will be: rename it.")
        label = Column(LABEL, "categorical", tuple(range(len(self.classes_))))
        machine.set_params(schema=Schema((*self.schema_.columns, label), frame=self.schema_.frame))
        if machine.random_state is None:
            machine.set_params(random_state=self.random_state)
        table = _joined(X, codes)
        self.joint_ = machine.fit(table)
        if self.n_tuning_epochs:
            self._tune(table)
        return self

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n K"]:
        """P(y | x) of each class, in the order of `classes_`; of what is observed where a row has NaN."""
        check_is_fitted(self)
        encoded = self.schema_.encode(self._checked(X, reset=False))
        rows = np.concatenate([encoded, np.zeros((len(encoded), 1))], axis=1)
        return label_probabilities(self.joint_, self.joint_.scaling_.apply(rows, float_dtype()))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def _tune(self, table: Any) -> None:
        joint = self.joint_
        rows, columns = joint._rows(table)[1], joint.columns_
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
            key=jax.random.fold_in(joint._key("fit"), 1),
            state=ChainState(chains, *zeros, moments(rows, columns)[1], jnp.zeros((), jnp.int32)),
            project=partial(keep_scales, columns=columns) if columns.is_quadratic.any() else None,
            label="tuning",
        )
        params = to_natural(result.module, columns)
        joint.params_ = eqx.tree_at(lambda p: p.chains, params, result.state.chains.astype(bool))
        joint.history_ = {"learning": joint.history_, "tuning": result.history}

    def _codes(self, y: Any) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold at least two classes, got one class: {self.classes_.tolist()[0]!r}.")
        return codes

    def _init(self, key, columns):
        raise NotImplementedError

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _with_label(rows: np.ndarray, label: float) -> np.ndarray:
    return np.concatenate([rows[:, :-1], np.full_like(rows[:, -1:], label)], axis=1)


def _softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def _joined(X: Any, codes: np.ndarray) -> Any:
    """X with the label's codes as one more column, in the library that X came from."""
    frame = as_frame(X)
    if frame is None:
        return np.column_stack([np.asarray(X), codes])
    import narwhals as nw

    return frame.with_columns(nw.new_series(LABEL, codes, backend=frame.implementation)).to_native()
