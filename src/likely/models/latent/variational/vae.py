"""Variational autoencoder: z ~ p(z), x | z ~ columns at decoder(z); learned with a recognition model q(z | x).

Kingma and Welling (2014). Trained by the evidence lower bound, or by the importance-weighted one (Burda, Grosse and
Salakhutdinov, 2016), which is also its evidence. Cost: an epoch takes about 6 x rows x weights floating-point
operations (of the decoder, times `n_importance_train`), an evidence 2 x rows x `n_importance` x weights of the decoder.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated

import jax
import numpy as np
from jax.tree_util import Partial

from likely.contract.model import FitRun
from likely.contract.settings import Count, Sizes, one_of
from likely.contract.trained import between, epochs_for, stopped
from likely.models.latent.variational.autoencoder import check_image
from likely.models.latent.variational.network import Design, VAEParams, first_module, with_pseudo_inputs
from likely.models.latent.variational.posteriors import FAMILIES
from likely.models.latent.variational.priors import PRIORS
from likely.models.latent.variational.variational import Decoded
from likely.runtime import has_holes, on_device

# Pseudo-inputs of rows with many holes say little: of a table with half of its cells erased 1 nat of complete test rows
# was lost with them, where the normal prior loses 0.3 at most.
_MOST_UNOBSERVED = 0.25
_MIXED = 20  # members of a mixture as prior
_ROWS_A_PSEUDO_INPUT = (
    50  # With 50, 100 and 200 of them validation rows gain ever less, and 200 take half as long again.
)


class VAE(Decoded):
    """Variational autoencoder.

    Parameters
    ----------
    n_components : number of latents.
    hidden : sizes of the encoder's hidden layers; the decoder has them in reverse. () makes both linear.
    channels : filters of convolutions of stride 2 before the hidden layers, and transposed after them, for tables that
        are pictures (`Schema.image_shape`); () for none.
    activation : "gelu", "tanh", "relu", "softplus", "sigmoid", "elu", "swish" ...
    posterior : family of q(z | x): "diagonal" Gaussian, "full" Gaussian, "low_rank" (Gaussian whose precision is
        diagonal plus u uᵀ), or "planar" (a diagonal Gaussian bent by four planar maps).
    prior : "normal", "mixture" of diagonal Gaussians, or "vamp", the mixture of q at learned pseudo-inputs. None takes
        "vamp" for tables, whose drawn rows it makes harder to tell from real ones, and "normal" for pictures, for rows
        of 0 and 1, where more than a quarter of the cells is unobserved, and where q has no density at any z (`prior_`
        after a fit).
    n_prior_components : members of such a mixture; None takes 20, or of "vamp" one for every 50 rows, from 5 to 100
        (`n_prior_components_` after a fit).
    n_epochs, batch_size, learning_rate, schedule, weight_decay, averaging, gradient_clip, memory_budget : see
        `TrainingConfig`; the optimiser is Adam. `n_epochs` None: as many as see a million rows in all, 10 to 200.
    warmup_steps : steps in which the learning rate rises to its value.
    n_samples : latents a row and step in the training bound.
    n_importance_train : latents a row and step inside the logarithm of the training bound; 1 is the evidence lower
        bound, more make it the importance-weighted one.
    n_importance_drawn : of these, how many the gradient goes through, drawn by their weights; None for all. One or a
        few leave its expectation as it is, add noise, and take half the time.
    beta : weight of the KL divergence in the training bound; 1 is the evidence lower bound.
    beta_warmup : epochs in which that weight rises from 0.
    patience, validate_every : early stopping, in epochs; the best epoch by rows for validation is kept. None waits for
        all epochs where `fit` is given `valid` rows, and for a fifth of them where it holds out its own.
    held_out : share of the rows that `fit` holds out where it is given no `valid`, at least 50; 0 for none.
        `history_["held_out"]` is their number.
    n_importance : samples a row behind an evidence (which rises with it towards the exact one) and a `condition`.
    n_refine : gradient steps that fit q(z | x) of each row that has unobserved cells, from the encoder's answer on.
    warm_start : a further `fit` goes on from what was learned, as with other `beta` or more `n_importance_train`; for
        the same table and networks.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Notes
    -----
    The encoder reads x, one-hot categories and log(1 + count), less their mean over the training rows, and 0 for an
    unobserved cell. If training rows had unobserved cells, it is also told which, unless it is convolutional.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> model = likely.VAE(n_components=4, hidden=(32,), n_epochs=5, n_importance=16, random_state=0).fit(digits.train)
    >>> model.evidence(digits.test).kind
    'lower'
    """

    n_components: Count = 16
    _: KW_ONLY
    hidden: Sizes = (200, 200)
    channels: Sizes = ()
    posterior: Annotated[str, one_of(FAMILIES)] = "diagonal"
    prior: Annotated[str, one_of(PRIORS)] | None = None
    n_prior_components: Count | None = None

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        return {"n_components": between(2, round(n_columns**0.5), 32), **stopped(epochs_for(100_000, n_rows))}

    def _build(self):
        design = Design(
            n_latent=self.n_components,
            hidden=self._sizes("hidden"),
            activation=self.activation,
            posterior=self.posterior,
            prior=getattr(self, "prior_", self.prior or "normal"),
            channels=self._sizes("channels"),
            image_shape=self.schema_.image_shape,
            n_prior_components=getattr(self, "n_prior_components_", self.n_prior_components or _MIXED),
            reads_holes=getattr(self, "reads_holes_", False),
        )
        return Partial(first_module, design=design)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> VAEParams:
        self._sizes("hidden")
        if self._sizes("channels"):
            check_image(self.schema_, "channels")
        self._choose_prior(rows)
        if self.prior_ == "vamp" and not FAMILIES[self.posterior].has_log_prob:
            raise ValueError(
                f"`prior='vamp'` needs log q(z | x) at any z, which posterior={self.posterior!r} has not: choose "
                "'diagonal', 'full' or 'low_rank', or prior='mixture'."
            )
        self._warn_of_many(self.n_components, "n_components")
        # Convolutions are not told of holes: a weight from every cell to every place of the first one would be more
        # weights than all others.
        self.reads_holes_ = has_holes(rows) and not len(self.channels)
        init_key, train_key = jax.random.split(key)
        module = self._start(self._build(), rows, init_key)
        if self.prior_ == "vamp":
            module = self._with_rows_as_inputs(module, rows, jax.random.fold_in(init_key, 1))
        return self._learn(module, rows, train_key, run)

    def _choose_prior(self, rows: np.ndarray) -> None:
        is_table = self.schema_.image_shape is None and set(self.columns_.kinds) != {"binary"}
        is_known = FAMILIES[self.posterior].has_log_prob and np.isnan(rows).mean() <= _MOST_UNOBSERVED
        self.prior_ = self.prior or ("vamp" if is_table and is_known else "normal")
        many = between(5, len(rows) // _ROWS_A_PSEUDO_INPUT, 100) if self.prior_ == "vamp" else _MIXED
        self.n_prior_components_ = self.n_prior_components or many

    def _with_rows_as_inputs(self, module: VAEParams, rows: np.ndarray, key: jax.Array) -> VAEParams:
        n_inputs = self.n_prior_components_
        few = len(rows) < n_inputs
        chosen = rows[np.asarray(jax.random.choice(key, len(rows), (n_inputs,), replace=few))]
        return with_pseudo_inputs(module, on_device(np.nan_to_num(chosen)), on_device(~np.isnan(chosen)))
