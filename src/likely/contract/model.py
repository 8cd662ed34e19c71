"""The contract of every model: fit, evidence, sample, condition, impute, denoise, transform, save.

`Model` is a scikit-learn estimator. It validates, converts, scales, and calls a model's hooks, which work on one float
matrix in standard units with NaN for unobserved cells. Its public methods are final; a model writes hooks only.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.columns import Columns
from likely.contract.batches import answered, batches, cells_of, encoded_by_batches, joined, key_of, rows_at_once
from likely.contract.conditional import Conditional, ConditionalParts, TableUnits
from likely.contract.drawing import Event, check_holes, draw_given, with_holes
from likely.contract.drawing.mixing import DrawnRows, Sampling, warn_if_unsure
from likely.contract.effort import check_budget, evidence_within, warn_if_wide, within
from likely.contract.estimator import FitRun, check_count, offered
from likely.contract.evidence import Evidence
from likely.contract.fingerprint import Fingerprint, named_columns
from likely.contract.rounding import bounds_of_masses, mass_of_intervals
from likely.contract.scikit_learn import DensityMixin
from likely.contract.settings import seed_of
from likely.contract.surprise import N_DRAWS, Surprise, surprise_of
from likely.contract.table_estimator import InStandardUnits, TableEstimator, hole_shares
from likely.contract.weights import sum_of, weighable, weighed_rows
from likely.runtime import float_dtype, generator
from likely.schema import Schema
from likely.training.progress import showing


class Hooks:
    """What a model may write besides `_init` and `_fit`, each where it means something; see `entries.HOOKS`.

    Rows are in standard units. The base adds units, measure, dimensions and fingerprint to an evidence.
    """

    _evidence: Callable[[np.ndarray, jax.Array], Evidence]  # of rows (n, d)
    _sample: Callable[[jax.Array, int], Any]  # (n, d); as `DrawnRows` where they are not exact draws
    _condition: Callable[[np.ndarray, jax.Array], ConditionalParts]
    _reconstruct: Callable[[np.ndarray, jax.Array], Any]
    _encode: Callable[[np.ndarray, jax.Array], Any]
    _decode: Callable[[np.ndarray], Any]
    n_components: Any  # the length of its codes


class Model(DensityMixin, Hooks, TableEstimator):
    """Base of all models; see `docs/adding-a-model.md` for the hooks.

    Fitted attributes
    -----------------
    params_ : the learned parameters, a frozen module of arrays in standard units.
    schema_ : what the columns are. cells_ : their values in standard units, and back. columns_ : the cells' family.
    history_ : learning curves, lists by name. seed_ : of `random_state`. hole_shares_ : of each column's cells.
    """

    _: KW_ONLY
    schema: Schema | None = None

    _effort: ClassVar[str | None] = None  # the hyper-parameter that more work on an evidence means, "n_temperatures"
    _conditional_effort: ClassVar[str | None] = None  # and on a conditional, "n_sweeps"
    _sampling_effort: ClassVar[str | None] = None  # and on a sample
    _is_composite: ClassVar[bool] = False  # made of other models, so that a line-up of all has it already

    # ------------------------------------------------------------------ hooks
    @abc.abstractmethod
    def _init(self, key: jax.Array, columns: Columns) -> Any:
        """Parameters of the right structure from hyper-parameters and columns alone."""

    @abc.abstractmethod
    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> Any:
        """Learned parameters from rows (n, d)."""

    # ------------------------------------------------------------- the contract
    @weighable
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        valid: Any = None,
        checkpoint: Any = None,
        resume: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn the distribution of the rows.

        Parameters
        ----------
        X : (n_rows, n_columns) array, memory map or data frame; NaN/None cells are unobserved.
        y : labels, for models that learn from them (`SemiSupervisedVAE`); else ignored, as in scikit-learn's pipelines.
        sample_weight : (n_rows,) how many such rows each row stands for, 0 and fractions among them, for models that
            can use it. What the columns are is read off the rows that have a weight, each once.
        valid : rows for early stopping, for models that use it.
        checkpoint : `likely.Checkpoint(path)`, or a path, to survive a crash, for models trained by gradient.
        resume : path of a checkpoint to go on from; the data and hyper-parameters must be the same.
        progress : True shows a bar in a terminal and lines elsewhere, False nothing; None a bar in a terminal.
        """
        self._validate_params()
        self._check_resumable(checkpoint, resume)
        X, y, weight = weighed_rows(X, y, sample_weight)
        encoded = self._read_new(X, weight)
        self.seed_ = seed_of(self.random_state)
        self.fingerprint_ = str(self._fingerprint(encoded))
        self._agree(lambda: {"data": self.fingerprint_, "sample_weight": sum_of(weight)})
        self.hole_shares_ = hole_shares(encoded, weight)
        rows = self._to_learn(encoded, 0)
        del encoded, X  # Only rows are learned from: of a large table the others would fill memory all the while.
        others = None if valid is None else self._to_learn(self._read_by_blocks(valid), 1)
        self.history_: dict[str, list[float]] = {}
        with showing(progress):
            self.params_ = self._fit(rows, self._key("fit"), FitRun(others, checkpoint, resume, y, weight=weight))
        return self

    def evidence(self, X: Any, *, budget: float | None = None) -> Evidence:
        """Log p(x) of each row in nats; of the observed cells where a row has NaN.

        Of a model that has no likelihood it is unavailable, and says why.

        Parameters
        ----------
        X : (n_rows, n_columns) rows.
        budget : how much work goes into an evidence that is sampled. A whole number is a number of temperatures (of
            samples, for models without); a float is seconds. None takes the model's own. Where the evidence is exact
            there is nothing to spend it on, and it is ignored.

        Warns
        -----
        EvidenceWarning : upper and lower limits are more than a nat apart on average; it says what to raise.
        """
        check_budget(budget)
        check_is_fitted(self)
        # An evidence depends on the row and the seed alone, so that batches are a matter of memory only.
        rows = (self._read(some) for _, some in batches(X, cells_of(self.columns_)))
        whole, effort = joined((self._evidence_of(encoded, budget) for encoded in rows), X)
        if hasattr(self, "_evidence"):
            warn_if_wide(self, whole, effort)
        return whole

    @offered("_evidence")
    def score_samples(self, X: Any) -> np.ndarray:
        """(n_rows,) the evidence's values: log p(x) in nats."""
        return self.evidence(X).values

    @offered("_evidence")
    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`."""
        return self.evidence(X).mean

    @offered("_evidence")
    def surprise(
        self, X: Any, *, n_draws: int = N_DRAWS, random_state: int | None = None, budget: float | None = None
    ) -> Surprise:
        """How odd each row is: the share of the model's own draws that are at most as likely, and which cells say so.

        Draws are compared with the same cells observed as the row has, so that rows with holes are ranked fairly.

        Parameters
        ----------
        X : (n_rows, n_columns) rows.
        n_draws : how many draws a tail probability rests on.
        random_state : seed of the draws; None takes the model's own.
        budget : how much work goes into the rows' evidence, as in `evidence`; that of the draws gets as much a row.
        """
        return surprise_of(self, X, n_draws, random_state, budget)

    @offered("_sample")
    def sample(
        self,
        n: int = 1,
        random_state: int | None = None,
        *,
        given: Mapping[Any, Any] | None = None,
        holes: float | Literal["seen"] | None = None,
        budget: float | None = None,
    ) -> Any:
        """N new rows, of the kind that `fit` saw: a data frame if that was one. `sampling_` says how they were drawn.

        Parameters
        ----------
        n : how many.
        random_state : seed; None takes the model's own.
        given : what the rows are to be like: of some columns the value, a range (low, high) with both ends included and
            None for an open one, or a list of allowed values. Exact values are conditioned on; for ranges and lists
            rows are drawn until n have them, and an error says how rare that is if it takes too many.
        holes : share of the cells that are unobserved, taken out at random; "seen" takes the share that each column had
            in the rows of the fit. Columns that are given stay whole.
        budget : how much work goes into rows that chains make. A whole number is the length of the chains (`n_sweeps`),
            a float is seconds; None takes the model's own. Where rows are drawn exactly it is ignored.

        Warns
        -----
        EvidenceWarning : chains like those that made the rows have not met; it says what to raise.
        """
        check_is_fitted(self)
        check_count(n)
        check_budget(budget)
        shares = check_holes(self, holes)
        event = None if given is None else Event.of(self.schema_, given)
        key = self._key("sample", random_state)
        if event is None:
            encoded = self._new_rows(key, n, budget)
        else:
            encoded, self._sampling = draw_given(self, key, n, event, budget)
        whole = () if event is None else (*event.exact, *event.allowed)
        return self.schema_.decode(with_holes(encoded, shares, whole, jax.random.fold_in(key, 2)))

    @property
    def sampling_(self) -> Sampling:
        """How the rows of the last `sample` were drawn: method, whether exactly, chains, and whether they have met."""
        found = vars(self).get("_sampling")
        if found is None:
            raise AttributeError("sampling_ is known after a call of sample.")
        return found

    @offered("_condition")
    def condition(self, X: Any, *, budget: float | None = None) -> Conditional:
        """The distribution of the NaN cells of each row given the others.

        Parameters
        ----------
        X : (n_rows, n_columns) rows.
        budget : how much work goes into a conditional that is sampled. A whole number is the length of the chains
            (`n_sweeps`; for models that weigh samples, how many), a float is seconds; None takes the model's own. Where
            it is exact there is nothing to spend it on, and it is ignored.

        Warns
        -----
        EvidenceWarning : chains have not met, or a few weights decide; it says what to raise.
        """
        return self._conditional(X, budget, "condition")

    @offered("_condition")
    def impute(self, X: Any, *, budget: float | None = None) -> Any:
        """X with its NaN cells filled: expected value of real cells, most probable value of the others.

        How that was found, and how well it is known, `condition` says, with which it shares `budget` and warnings.
        """
        return self._typical(X, budget)[0]

    @offered("_reconstruct")
    def denoise(self, X: Any) -> Any:
        """X as the model sees it through its code: reconstructed cells, the unobserved ones filled."""
        check_is_fitted(self)
        return answered(self, X, self._denoised)[0]

    @offered("_encode")
    def transform(self, X: Any) -> np.ndarray:
        """(n_rows, n_components) the code of each row."""
        _, rows = self._rows(X)
        return np.asarray(self._encode(rows, self._key("transform")))

    @offered("_encode")
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """fit, then transform."""
        return self.fit(X, y, **fit_params).transform(X)

    @offered("_decode")
    def inverse_transform(self, Z: Any) -> Any:
        """Expected rows for codes (n_rows, n_components)."""
        check_is_fitted(self)
        codes = np.asarray(Z, dtype=float_dtype())
        if codes.ndim != 2 or codes.shape[1] != self._n_codes:
            raise ValueError(
                f"codes must be (n_rows, {self._n_codes}), as transform returns them, got shape {codes.shape}."
            )
        return self.schema_.decode(self.cells_.expected(self._decode(codes)))

    # ---------------------------------------------------------------- plumbing
    @property
    def _n_codes(self) -> int:
        """The length of a code, as it was asked for or found by the fit."""
        return int(getattr(self, "n_components_", None) or self.n_components)

    def _new_rows(self, key: jax.Array, n: int, budget: float | None) -> np.ndarray:
        """(n, d) new rows, encoded."""
        step, d = rows_at_once(cells_of(self.columns_)), self.schema_.n_columns
        if n > step:  # Batches of one size, the last one cut, so that all are drawn by one program.
            make = lambda first, count: self._new_rows(key_of(key, first), step, budget)[:count]  # noqa: E731
            return encoded_by_batches(make, n, d, step)
        name = self._sampling_effort
        is_exact = lambda rows: not isinstance(rows, DrawnRows)  # noqa: E731
        drawn, effort = within(self, name, lambda model: model._sample(key, n), is_exact, budget)
        rows, self._sampling = (drawn.rows, drawn.how) if isinstance(drawn, DrawnRows) else (drawn, Sampling())
        warn_if_unsure(self, "sample", self._sampling.mixing, name, effort, "sample(n, budget={})", stacklevel=4)
        return self.cells_.invert(np.asarray(rows), generator(jax.random.fold_in(key, 1)))

    def _to_user(self, standard: Any, key: jax.Array) -> Any:
        """Drawn cells as rows of the user; the key is for what is drawn within a cell."""
        return self.schema_.decode(self.cells_.invert(np.asarray(standard), generator(key)))

    def _typical(self, X: Any, budget: float | None) -> tuple[Any, Conditional]:
        """X with its NaN cells filled, and the conditional of the first rows, or of all if there are few."""
        check_budget(budget)
        check_is_fitted(self)

        def filled(some: Any, first: int) -> tuple[np.ndarray, Conditional]:
            found = self._conditional(some, budget, "impute", first, stacklevel=8)
            return found.typical_rows(), found

        return answered(self, X, filled)

    def _denoised(self, X: Any, first: int) -> tuple[np.ndarray, None]:
        _, rows = self._rows(X)
        return self.cells_.typical(self._reconstruct(rows, key_of(self._key("denoise"), first))), None

    def _conditional(
        self, X: Any, budget: float | None, verb: str, first_row: int = 0, stacklevel: int = 4
    ) -> Conditional:
        check_budget(budget)
        encoded, rows = self._rows(X)
        key, name = self._batch_key(first_row), self._conditional_effort
        is_exact = lambda parts: parts.stderr is None  # noqa: E731
        parts, effort = within(self, name, lambda model: model._condition(rows, key), is_exact, budget)
        warn_if_unsure(self, "conditional", parts.mixing, name, effort, verb + "(X, budget={})", stacklevel)
        units = TableUnits(self.schema_, self.cells_)
        return Conditional(units, encoded, parts, partial(self._batch_key, first_row), X)

    def _batch_key(self, first_row: int, random_state: int | None = None) -> jax.Array:
        """The randomness of the draws of a batch."""
        return key_of(self._key("condition", random_state), first_row)

    def _to_learn(self, encoded: np.ndarray, part: int) -> np.ndarray:
        """Encoded rows in standard units, for a fit: rounded ones anywhere within their intervals.

        At the middles of the intervals a density could rise without bound where values repeat.
        """
        if not self.cells_.is_rounded:
            return self._standard(encoded)
        return self.cells_.apply(
            encoded, float_dtype(), generator(jax.random.fold_in(self._key("fit"), 2**31 - 1 - part))
        )

    def _mass(self, encoded: np.ndarray) -> Evidence:
        """Log p of rows with rounded cells: the mass of their intervals."""
        evidence = lambda rows: self._evidence(rows, self._key("evidence"))  # noqa: E731
        return mass_of_intervals(self.cells_, encoded, evidence, generator(self._key("evidence")))

    def _log_p_to_compare(self, encoded: np.ndarray, effort: int | None) -> np.ndarray:
        """(n,) log p of encoded rows, to be compared with that of others: of rounded cells by the first few points.

        All rows share their points, and so most of what few points miss.
        """
        if not self.cells_.is_rounded:
            return self._evidence_of(encoded, effort)[0].values
        evidence = lambda rows: self._evidence(rows, self._key("evidence"))  # noqa: E731
        return bounds_of_masses(self.cells_, encoded, evidence, generator(self._key("evidence")), 1)[0][:, 0]

    def _evidence_of(self, encoded: np.ndarray, budget: float | None) -> tuple[Evidence, int | None]:
        """The evidence of encoded rows as the user sees it, and the effort behind it."""
        if not hasattr(self, "_evidence"):
            return self._finished(Evidence.unavailable(len(encoded), self._no_evidence), encoded), None
        if self.cells_.is_rounded:
            return self._described(self._mass(encoded), encoded), None
        part, effort = evidence_within(self, self._standard(encoded), self._key("evidence"), budget)
        return self._finished(part, encoded), effort

    def _finished(self, part: Evidence, encoded: np.ndarray) -> Evidence:
        """An evidence of rows in standard units, in the user's units, with measure, dimensions and fingerprint."""
        return self._described(part.shifted(self.cells_.log_weight(encoded)), encoded)

    def _described(self, part: Evidence, encoded: np.ndarray) -> Evidence:
        return replace(
            part,
            measure=self.schema_.measure,
            dimensions=(~np.isnan(encoded)).sum(axis=1),
            fingerprint=self._fingerprint(encoded),
        )

    def _fingerprint(self, encoded: np.ndarray) -> Fingerprint:
        """The name of encoded rows."""
        about = named_columns(getattr(self, "feature_names_in_", None))
        return Fingerprint.of(encoded, self.schema_.columns, about)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        if hasattr(type(self), "_encode"):
            from sklearn.utils import TransformerTags

            tags.transformer_tags = TransformerTags(preserves_dtype=[])
        return tags


__all__ = ["ConditionalParts", "FitRun", "InStandardUnits", "Model"]
