"""Semi-supervised VAE: y ~ p(y), z ~ N(0, I), x | y, z ~ columns at decoder(z, y); labels y for some rows only.

Kingma, Rezende, Mohamed and Welling (2014), their M2. Rows without a label teach the networks too, summed over the
labels that they might have. Cost: that of a VAE, times the number of classes.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted

from likely.contract.conditional import ConditionalParts
from likely.contract.drawing.mixing import Mixing
from likely.contract.evidence import Evidence
from likely.contract.labels import UNKNOWN, known_codes, read_labels
from likely.contract.model import FitRun
from likely.contract.predictor import pair_fingerprint
from likely.contract.settings import Count, NonNegative, Sizes, Whole
from likely.contract.target import Target
from likely.models.latent.variational.network import Design, built, first_module
from likely.models.latent.variational.semi_supervised.network import (
    LabelledParams,
    codes_and_means,
    draw_labelled,
    draw_new_labelled,
    first_labelled,
    label_probabilities,
    weigh_labels,
)
from likely.models.latent.variational.variational import Variational, draws_of
from likely.objectives.semi_supervised import labelled_loss, negative_labelled_bound
from likely.runtime import BLOCK_ROWS, by_blocks, has_holes, on_device


class SemiSupervisedVAE(Variational):
    """A VAE of rows with labels, for tables where most labels are unknown: `fit(X, y)`.

    Unknown labels are -1, NaN or None in y. `predict` and `predict_proba` are q(y | x); the evidence is that of x, with
    the label summed out, and `score` its mean, as in every model here; `accuracy` judges predictions.

    Parameters
    ----------
    n_components : number of latents besides the label.
    label_weight : weight of log q(y | x) of the labelled rows, all of them together against all rows.
    label_warmup : epochs in which labelled rows alone teach q(y | x); in as many more the say of the others rises. Too
        few, and rows without labels form classes of their own.
    hidden, activation, n_epochs, batch_size, learning_rate, schedule, warmup_steps, weight_decay, averaging,
        gradient_clip, memory_budget, patience, validate_every, held_out, n_importance, n_refine, schema, random_state :
        as in `likely.VAE`.

    Attributes
    ----------
    classes_ : the labels, in order.

    Examples
    --------
    With 100 of the 1,000 labels of digits, 8 latents and hidden=(100,), it predicts 89% of the test rows (docs/vae.md).
    Some labels it needs:

    >>> SemiSupervisedVAE(1).fit([[0.0], [1.0], [1.0]], [-1, -1, 3])
    Traceback (most recent call last):
    ValueError: SemiSupervisedVAE needs labelled rows of at least two classes, but `y` has 1 class (3); rows labelled
    -1, NaN or None count as unlabelled.
    """

    n_components: Count = 16
    _: KW_ONLY
    hidden: Sizes = (200, 200)
    label_weight: NonNegative = 1.0
    label_warmup: NonNegative = 40.0
    n_refine: Whole = 30

    _why_not: ClassVar[dict[str, str]] = {
        "inverse_transform": "a row is made of its code and its label; `sample_class` draws rows of a label"
    }

    # ------------------------------------------------------------------ labels
    def predict_proba(self, X: Any) -> Float[np.ndarray, "n K"]:
        """q(y | x) of each class, in the order of `classes_`; of what is observed where a row has NaN."""
        _, rows = self._rows(X)
        return by_blocks(lambda x, observed: label_probabilities(self.params_, x, observed), rows)

    def predict_log_proba(self, X: Any) -> Float[np.ndarray, "n K"]:
        """Log q(y | x) of each class."""
        with np.errstate(divide="ignore"):  # a probability may round to 0
            return np.log(np.asarray(self.predict_proba(X), np.float64))

    def label_evidence(self, X: Any, y: Any) -> Evidence:
        """Log q(y | x) of each row, typed, as `likely.Predictor.evidence` has it; `evidence` is that of x."""
        encoded, _ = self._rows(X)
        classes = np.array(self.classes_)
        codes, target = known_codes(y, len(encoded), classes, whose="`y`"), Target.of_classes(classes)
        return Evidence.exact(
            self.predict_log_proba(X)[np.arange(len(codes)), codes],
            method="recognition network q(y | x)",
            measure=target.schema.measure.conditional(target.name),
            fingerprint=pair_fingerprint(self, encoded, target, codes[:, None]),
        )

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        codes = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_)[codes]

    def accuracy(self, X: Any, y: Any) -> float:
        """Share of the rows whose class is predicted; each must have a label that `fit` saw."""
        check_is_fitted(self)
        known = [self._code(label) for label in np.asarray(y).ravel().tolist()]
        predicted = self.predict_proba(X).argmax(axis=1)
        if len(known) != len(predicted):
            raise ValueError(f"`y` must have a label for each of the {len(predicted)} rows of X, got {len(known)}.")
        return float(np.mean(predicted == np.asarray(known)))

    def sample_class(self, label: Any, n: int = 1, random_state: int | None = None) -> Any:
        """N new rows with that label."""
        check_is_fitted(self)
        key = self._key("sample", random_state)
        rows = self._draws(key, n, on_device(self._code(label)))
        return self._to_user(rows, jax.random.fold_in(key, 1))

    # ------------------------------------------------------------------- hooks
    def _design(self) -> Design:
        reads_holes = getattr(self, "reads_holes_", False)
        return Design(self.n_components, self._sizes("hidden"), self.activation, reads_holes=reads_holes)

    def _build(self):
        return Partial(first_labelled, design=self._design(), n_labels=len(self.classes_))

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> LabelledParams:
        self._sizes("hidden")
        classes, codes = read_labels(run.labels, len(rows), whose=type(self).__name__)
        self._warn_of_many(self.n_components, "n_components")
        self.classes_, self.reads_holes_ = classes.tolist(), has_holes(rows)
        init_key, train_key = jax.random.split(key)
        start = self._start(Partial(first_module, design=self._design()), rows, init_key)
        module = eqx.tree_at(lambda m: m.autoencoder, built(self._build(), init_key, self.columns_), start)
        holed = self.reads_holes_ or (run.valid is not None and bool(np.isnan(run.valid).any()))
        objective = partial(
            negative_labelled_bound,
            # Labels are few: together they weigh as much as all rows.
            label_weight=self.label_weight * len(rows) / int((codes != UNKNOWN).sum()),
            has_holes=holed,
        )
        valid = None if run.valid is None else _with_labels(run.valid, np.full(len(run.valid), UNKNOWN))
        run = FitRun(valid, run.checkpoint, run.resume)
        validate = partial(labelled_loss, has_holes=holed)
        # Labels are few, and none is held out: a row without one looks as those of `valid` do.
        rows, unlabelled = _with_labels(rows, codes), codes == UNKNOWN
        return self._train(module, objective, validate, rows, train_key, run, self.label_warmup, unlabelled)

    def _evidence(self, rows, key):
        values, replicates = by_blocks(lambda x, observed: self._weigh(key, x, observed)[:2], rows)
        method = f"sum over {len(self.classes_)} labels, each by {self.n_importance} samples from q(z | x, y)"
        return Evidence.lower_bound(values, replicates if self.n_importance > 1 else None, method=method)

    def _sample(self, key, n):
        return self._draws(key, n, None)

    def _condition(self, rows, key):
        weigh = lambda x, observed: self._weigh(key, x, observed, conditional=True)[2:]  # noqa: E731
        average, stderr, parts = by_blocks(weigh, rows)

        def sample_block(draw_key, part):
            return draw_labelled(draw_key, key, self.params_, *(on_device(a[part]) for a in parts))

        method = f"importance resampling of {self.n_importance} latents for each label"
        # A draw takes a label by log p(x, y), then a latent by the label's weights, which sum to one for that.
        log_joint, log_weights, _ = parts
        each = log_weights - np.logaddexp.reduce(log_weights, axis=2, keepdims=True) + log_joint[:, :, None]
        mixing = Mixing.of_weights(each.reshape(len(rows), -1), np.isnan(rows).any(axis=1))
        return ConditionalParts(average, partial(draws_of, sample_block, len(rows)), method, stderr, mixing)

    def _encode(self, rows, key):
        return self._codes_and_means(rows, key)[0]

    def _reconstruct(self, rows, key):
        return self._codes_and_means(rows, key)[1]

    def _codes_and_means(self, rows: np.ndarray, key: jax.Array) -> Any:
        return by_blocks(lambda x, observed: codes_and_means(key, self.params_, x, observed, self.n_refine), rows)

    def _weigh(self, key: jax.Array, x: Any, observed: Any, conditional: bool = False) -> Any:
        options = {"n_importance": self.n_importance, "n_refine": self.n_refine, "conditional": conditional}
        return weigh_labels(key, self.params_, x, observed, **options)

    def _draws(self, key: jax.Array, n: int, label: jax.Array | None) -> np.ndarray:
        keys = (jax.random.fold_in(key, block) for block in range(math.ceil(n / BLOCK_ROWS)))
        return np.concatenate([np.asarray(draw_new_labelled(k, self.params_, BLOCK_ROWS, label)) for k in keys])[:n]

    def _code(self, label: Any) -> int:
        if label not in self.classes_:
            raise ValueError(
                f"no training row has the label {label!r}: the labels are {', '.join(map(repr, self.classes_))}."
            )
        return self.classes_.index(label)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _with_labels(rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Rows with the codes of their labels as a last column, NaN where unknown."""
    return np.column_stack([rows, np.where(codes == UNKNOWN, np.nan, codes)]).astype(rows.dtype)
