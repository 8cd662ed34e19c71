"""Autoencoder with discrete latents: z ~ bits or categories, x | z ~ columns at decoder(z); q(z | x) by an encoder.

One layer, p(z) independent units, or two, p(z) = p(upper) p(lower | upper). Mnih and Gregor (2014); Jang, Gu and Poole
(2017). Learned by the evidence lower bound with any estimator of `likely.gradients`. Cost of a step: the networks'
products at `n_samples` latents a row, forwards for score functions and also backwards for relaxations. The evidence is
exact up to 16 latent bits, at 2^bits decoder passes for all rows together; else importance-weighted.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from functools import partial
from numbers import Real
from typing import Annotated, Any

import equinox as eqx
import jax
import numpy as np

from likely.columns import Columns
from likely.contract.evidence import Evidence
from likely.contract.model import FitRun
from likely.contract.settings import Count, Sizes, Unchecked, one_of
from likely.contract.trained import between, epochs_for, stopped
from likely.gradients import ESTIMATORS, Estimator, make_estimator
from likely.gradients.distributions import Discrete, Family
from likely.gradients.relaxed import check_temperature
from likely.models.latent.variational.column_means import starting_point
from likely.models.latent.variational.discrete.network import (
    MAX_EXACT_BITS,
    Design,
    DiscreteAutoencoder,
    codes,
    decoded,
    draw,
    draw_new,
    first_module,
    log_prob,
    weigh_rows,
)
from likely.models.latent.variational.variational import (
    Variational,
    importance_conditional,
    importance_evidence,
    new_rows,
)
from likely.objectives.discrete_elbo import discrete_elbo_loss, negative_discrete_elbo
from likely.runtime import by_blocks, float_dtype, has_holes
from likely.training import train

MAX_ENUMERATED_BITS = 8  # A training step passes 2^bits latents a row through the decoder.
# Estimators that are made for discrete latents, or for any.
SUITED = tuple(name for name, make in ESTIMATORS.items() if any(kind in (Discrete, Family) for kind in make().families))
WITH_TEMPERATURE = ("gumbel_softmax", "rebar", "straight_through_gumbel")


class DiscreteVAE(Variational):
    """Variational autoencoder with Bernoulli or categorical latents.

    Parameters
    ----------
    n_components : length of the code: the number of bits, or of categories in all.
    n_categories : values of a latent. 2 makes bits; c > 2 makes n_components / c one-hot latents.
    n_upper : length of a second, upper layer of latents of the same kind; 0 for one layer.
    estimator : of the gradient: "score", "score_running_mean", "score_leave_one_out", "score_learned", "vimco",
        "rebar", "gumbel_softmax", "straight_through", "straight_through_gumbel", "enumeration" (few bits).
    temperature : of relaxed draws: a number, or a pair (first, last) between which it falls over the training; None is
        the estimator's own, 0.5.
    n_samples : latents a row and step.
    hidden, activation : of the encoder; the decoder has the layers in reverse. () makes both linear.
    n_epochs, batch_size, learning_rate, schedule, warmup_steps, weight_decay, averaging, gradient_clip, memory_budget :
        see `TrainingConfig`; the optimiser is Adam, and `n_epochs` None as in `likely.VAE`.
    patience, validate_every, held_out : early stopping, as in `likely.VAE`.
    n_importance : samples a row behind a `condition`, and an evidence that is not exact.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Notes
    -----
    Given a row, q takes all latents as independent, those of both layers. `transform` gives the means of the lower
    ones.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> model = likely.DiscreteVAE(6, hidden=(), n_epochs=5, random_state=0).fit(digits.train)
    >>> model.evidence(digits.test).kind
    'exact'
    """

    n_components: Count = 32
    _: KW_ONLY
    n_categories: Count = 2
    n_upper: Unchecked = 0
    estimator: Annotated[str, one_of(ESTIMATORS)] = "gumbel_softmax"
    temperature: Unchecked = None
    n_samples: Count = 1
    hidden: Sizes = (200,)

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        return {"n_components": between(4, n_columns // 2, 32), **stopped(epochs_for(200_000, n_rows))}

    def _build(self):
        return partial(first_module, self._design())

    def _design(self) -> Design:
        sizes = (int(self.n_components), int(self.n_categories), int(self.n_upper))
        return Design(*sizes, self._sizes("hidden"), self.activation, getattr(self, "reads_holes_", False))

    @property
    def n_latent_bits_(self) -> float:
        """log2 of the number of configurations of the latents."""
        return math.log2(self.n_categories) * (self.n_components + self.n_upper) / self._per_unit()

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> DiscreteAutoencoder:
        self._check_sizes()
        self._warn_of_many(self.n_components, "n_components")
        self.reads_holes_ = has_holes(rows)
        init_key, state_key, train_key = jax.random.split(key, 3)
        module, given = self._first_module(rows, init_key), run
        rows, run = self._divided(rows, train_key, given)
        estimator = self._estimator(self._epochs(len(rows)) * math.ceil(len(rows) / self.batch_size))
        result = train(
            module,
            partial(negative_discrete_elbo, estimator=estimator, n_samples=self.n_samples),
            rows,
            config=self._training(**self._stopping(given, run, len(rows))),
            key=train_key,
            state=estimator.start(state_key, len(module.offset), float_dtype()),
            validate=None if run.valid is None else discrete_elbo_loss,
            valid_rows=run.valid,
            checkpoint=run.checkpoint,
            resume=run.resume,
        )
        self.history_ = self._with_held_out(result.history, given, run)
        return result.module

    def _first_module(self, rows: np.ndarray, key: jax.Array) -> DiscreteAutoencoder:
        """The module that training starts from: `Independent`, whatever the latents."""
        start = starting_point(rows, self.columns_)
        places = lambda module: (module.decoder.layers[-1].bias, module.offset)  # noqa: E731
        return eqx.tree_at(places, _first(self._design(), key, self.columns_), (start.location, start.offset))

    # ------------------------------------------------------------------ what does not go together
    def _per_unit(self) -> int:
        return 1 if self.n_categories == 2 else self.n_categories

    def _check_sizes(self) -> None:
        c = self.n_categories
        if c < 2:
            raise ValueError(f"`n_categories` must be at least 2, got {c}: a latent of one value says nothing.")
        if isinstance(self.n_upper, bool) or not isinstance(self.n_upper, int | np.integer) or self.n_upper < 0:
            raise ValueError(f"`n_upper` must be a whole number, 0 for one layer of latents, got {self.n_upper!r}.")
        for name in ("n_components", "n_upper"):
            size = getattr(self, name)
            if size % self._per_unit():
                raise ValueError(
                    f"`{name}` must be a multiple of `n_categories` ({c}), got {size}: it is the length of a code of "
                    f"one-hot latents; try {c * math.ceil(size / c)}."
                )

    def _estimator(self, n_steps: int) -> Estimator:
        """The estimator by its name, with its temperature, if it can do what is asked."""
        name = self.estimator
        if name not in SUITED:
            raise ValueError(
                f"`estimator` {name!r} needs continuous latents, and these are discrete: choose one of "
                f"{', '.join(SUITED)}, or use VAE."
            )
        estimator = make_estimator(name, **self._temperatures(n_steps))
        if self.n_samples < estimator.fewest:
            raise ValueError(
                f"`n_samples` must be at least {estimator.fewest} for estimator {name!r}, which compares a draw with "
                f"the others, got {self.n_samples}: raise it, or choose another estimator."
            )
        if name == "enumeration" and self.n_latent_bits_ > MAX_ENUMERATED_BITS:
            raise ValueError(
                f"estimator 'enumeration' sums over all latents at every step, and takes at most {MAX_ENUMERATED_BITS} "
                f"bits, got {self.n_latent_bits_:g}: lower `n_components`, or choose 'score_leave_one_out'."
            )
        return estimator

    def _temperatures(self, n_steps: int) -> dict[str, Any]:
        given = self.temperature
        if given is None:
            return {}
        if self.estimator not in WITH_TEMPERATURE:
            raise ValueError(
                f"`temperature` means nothing to estimator {self.estimator!r}: leave it out, or choose one of "
                f"{', '.join(WITH_TEMPERATURE)}."
            )
        if isinstance(given, Real):
            check_temperature("temperature", given)
            return {"temperature": float(given)}
        if self.estimator == "rebar" or not isinstance(given, tuple | list) or len(given) != 2:
            wanted = "a number" if self.estimator == "rebar" else "a number, or a pair (first, last)"
            raise ValueError(f"`temperature` must be {wanted}, above 0, got {given!r}.")
        for value in given:
            check_temperature("temperature", value)
        first, last = (float(value) for value in given)
        return {"temperature": first, "final_temperature": last, "n_steps": n_steps}

    # ------------------------------------------------------------------ answers
    def _evidence(self, rows, key):
        if self.n_latent_bits_ <= MAX_EXACT_BITS:
            values = by_blocks(lambda x, observed: log_prob(self.params_, x, observed), rows)
            return Evidence.exact(values, method=f"sum over 2^{self.n_latent_bits_:.3g} configurations of the latents")
        return importance_evidence(partial(self._weigh, key), rows, self.n_importance)

    def _sample(self, key, n):
        return new_rows(draw_new, self.params_, key, n)

    def _condition(self, rows, key):
        return importance_conditional(partial(self._weigh, key), draw, self.params_, key, rows, self.n_importance)

    def _encode(self, rows, key):
        return by_blocks(lambda x, observed: codes(self.params_, x, observed), rows)

    def _decode(self, codes):
        return by_blocks(lambda z, _: decoded(self.params_, z), codes)

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))

    def _weigh(self, key: jax.Array, x: Any, observed: Any, conditional: bool = False) -> Any:
        n = self.n_importance
        return weigh_rows(key, self.params_, x, observed, n_importance=n, conditional=conditional)


@eqx.filter_jit
def _first(design: Design, key: jax.Array, columns: Columns) -> DiscreteAutoencoder:
    return first_module(design, key, columns)
