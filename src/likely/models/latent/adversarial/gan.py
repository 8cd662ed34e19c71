"""Generative adversarial network: x = G(z), z ~ N(0, I), learned against a critic that tells rows from samples.

Goodfellow et al. (2014). Real columns are G(z) itself; binary, categorical and count columns are drawn from their own
distributions at G(z), so that the critic sees whole bits, and slopes pass through the draw as if it were its mean
(straight-through; Bengio et al., 2013), which is biased. Cost: an epoch takes about (6 `n_critic` + 6) x rows x weights
floating-point operations, and twice that for the critic where slopes are penalised.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from functools import partial
from typing import Annotated, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.contract.evidence import Evidence
from likely.contract.model import FitRun, Model
from likely.contract.settings import Count, Decay, NonNegative, Positive, Sizes, one_of
from likely.contract.trained import N_VISITS, Trained, epochs_for
from likely.models.latent.variational.column_means import starting_point
from likely.models.latent.variational.network import layer_sizes
from likely.models.latent.variational.priors import StandardNormal
from likely.nets import MLP, encoder_features, location_mean, location_natural, log_density_at, n_locations
from likely.nets.column_interface import MIN_SCALE, spread_locations
from likely.nets.mlp import Activation
from likely.objectives.adversarial import LOSSES, Opponent, adversarial
from likely.runtime import BLOCK_ROWS, by_blocks, float_dtype, on_device
from likely.training import train

# Where none is given: a Wasserstein critic is of use when it is nearly the best, so it takes more steps, and of tables
# with few columns WGAN-GP's own weight of 10 slows it down.
PENALTIES = {"non_saturating": 0.1, "saturating": 0.1, "wasserstein": 1.0}
CRITIC_STEPS = {"non_saturating": 1, "saturating": 1, "wasserstein": 5}


class GeneratorNetwork(eqx.Module):
    """The network from latents (k,) to locations (L,), and mean features (L,) that the critic's input is less by."""

    network: MLP
    offset: Float[Array, " L"]
    columns: Columns = eqx.field(static=True)

    @property
    def n_latent(self) -> int:
        """Number k of latents."""
        return self.network.layers[0].weight.shape[1]

    def features(self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None) -> Float[Array, "n L"]:
        """What the critic reads of rows; 0 where unobserved."""
        return encoder_features(self.columns, x, observed, jax.lax.stop_gradient(self.offset))

    def draw(self, key: Key[Array, ""], location: Float[Array, "n L"]) -> Float[Array, "n d"]:
        """Rows at locations: real cells as they are, the others from their columns' distributions."""
        drawn = self.columns.sample(key, location_natural(self.columns, location, self._log_scale))
        is_real = np.array([kind == "real" for kind in self.columns.kinds])
        means = self.columns.expected_rows(location_mean(self.columns, location, self._log_scale))
        return jnp.where(is_real[None, :], means, drawn)

    def fake_features(
        self, key: Key[Array, ""], z: Float[Array, "n k"], observed: Bool[Array, "n d"] | None
    ) -> Float[Array, "n L"]:
        """What the critic reads of generated rows: of the rows drawn, with the slopes of their means."""
        location = self.network(z)
        hard = self.features(self.draw(key, location), observed)
        linear = ~self.columns.is_quadratic
        soft = location_mean(self.columns, location, self._log_scale)[:, linear]
        counts = np.array([self.columns.kinds[place] == "count" for place in self.columns.column_of[linear]])
        soft = jnp.where(counts[None, :], jnp.log1p(soft), soft)
        if observed is not None:
            soft = jnp.where(spread_locations(self.columns, observed), soft, 0)
        return jax.lax.stop_gradient(hard - soft) + soft

    @property
    def _log_scale(self) -> Array:
        return jnp.zeros(len(self.columns.real_places), self.offset.dtype)


class GANParams(eqx.Module):
    """Both players."""

    generator: GeneratorNetwork
    critic: MLP


class NoisyGenerator(eqx.Module):
    """The generator with Gaussian noise on its real columns, which then has a density; in standard units."""

    generator: GeneratorNetwork
    log_noise: Float[Array, " r"]

    @property
    def n_latent(self) -> int:
        """Number k of latents."""
        return self.generator.n_latent

    def recognise(self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None) -> Float[Array, "n 0"]:
        """Nothing: chains start from the prior."""
        return jnp.zeros((len(x), 0), x.dtype)

    def prior(self) -> StandardNormal:
        """p(z)."""
        return StandardNormal()

    def log_likelihood(
        self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, z: Float[Array, "n s k"]
    ) -> Float[Array, "n s"]:
        """log p(x | z) of the observed cells."""
        seen = None if observed is None else observed[:, None, :]
        location = self.generator.network(z)
        return log_density_at(self.generator.columns, x[:, None, :], seen, location, self.log_noise)


def first_params(
    key: Key[Array, ""], columns: Columns, n_latent: int, hidden: tuple[int, ...], activation: str
) -> GANParams:
    """Both networks before training."""
    own_key, critic_key = jax.random.split(key)
    n_cells = n_locations(columns)
    network = MLP(own_key, n_latent, n_cells, hidden=hidden[::-1], activation=activation)
    critic = MLP(critic_key, n_cells, 1, hidden=hidden, activation=activation)
    return GANParams(GeneratorNetwork(network, jnp.zeros(n_cells, float_dtype()), columns), critic)


_first_params = eqx.filter_jit(first_params)


@eqx.filter_jit
def _draw_new(key: Array, generator: GeneratorNetwork, n: int) -> Array:
    latent_key, row_key = jax.random.split(key)
    z = jax.random.normal(latent_key, (n, generator.n_latent), generator.offset.dtype)
    return generator.draw(row_key, generator.network(z))


@eqx.filter_jit
def _scores(params: GANParams, x: Array, observed: Array | None) -> Array:
    return params.critic(params.generator.features(x, observed))[:, 0]


class GAN(Trained, Model):
    """A generator trained against a critic: samples without a likelihood.

    Parameters
    ----------
    n_components : number of latents.
    hidden : sizes of the critic's hidden layers; the generator has them in reverse.
    activation : "gelu", "tanh", "relu", "leaky_relu", "swish" ...
    loss : "non_saturating", "saturating" (the value of the game itself) or "wasserstein".
    penalty : weight of the penalty on the critic's slopes: R1 for the first two losses, that of WGAN-GP for the third.
        None takes 0.1 and 1; 0 leaves it out.
    n_critic : updates of the critic for each of the generator; None takes 1, and 5 for "wasserstein".
    n_epochs, batch_size, learning_rate, schedule, averaging, memory_budget : see `likely.training.TrainingConfig`;
        the optimiser is Adam, and the critic's rate is the same, without schedule. `averaging` is of the generator.
        `n_epochs` None is as many as see a million rows in all, from 10 to 200.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Notes
    -----
    Where training rows have holes, the same cells of the samples beside them are hidden from the critic: right where
    cells are missing completely at random.

    Examples
    --------
    >>> import likely
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(500, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    >>> model = likely.GAN(2, hidden=(16,), n_epochs=100, random_state=0).fit(rows)
    >>> bool(np.corrcoef(model.sample(2000).T)[0, 1] > 0.6)
    True
    >>> model.evidence(rows).kind
    'unavailable'
    """

    n_components: Count = 8
    _: KW_ONLY
    hidden: Sizes = (128, 128)
    activation: Activation = "leaky_relu"
    loss: Annotated[str, one_of(LOSSES)] = "non_saturating"
    penalty: NonNegative | None = None
    n_critic: Count | None = None
    n_epochs: Count | None = None  # type: ignore[assignment]
    batch_size: Count = 100
    learning_rate: Positive = 1e-3
    averaging: Decay | None = 0.995
    memory_budget: Count = 2 << 30

    _resumable = True
    _no_evidence = (
        "a GAN draws rows, and of their density nothing is known: test its samples against rows with likely.mmd_test "
        "or likely.classifier_test, or ask noisy_evidence(X, noise), which is of samples with Gaussian noise on them"
    )
    _why_not: ClassVar[dict] = {
        "transform": "it goes from latents to rows only",
        "fit_transform": "it goes from latents to rows only",
        "inverse_transform": "it goes from latents to rows only, and no row has a code; sample draws rows",
        "denoise": "it goes from latents to rows only",
        "condition": "it draws whole rows, and has no density to condition",
        "impute": "it draws whole rows, and has no density to condition",
    }

    def _init(self, key, columns):
        return first_params(key, columns, self.n_components, tuple(self.hidden), self.activation)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> GANParams:
        hidden = layer_sizes("hidden", self.hidden)
        init_key, train_key = jax.random.split(key)
        params = _first_params(init_key, self.columns_, self.n_components, hidden, self.activation)
        start = starting_point(rows, self.columns_)
        first = eqx.tree_at(
            lambda g: (g.network.layers[-1].bias, g.offset), params.generator, (start.location, start.offset)
        )
        rate = float(self.learning_rate)
        result = train(
            first,
            partial(
                adversarial,
                loss=self.loss,
                penalty=float(PENALTIES[self.loss] if self.penalty is None else self.penalty),
                n_critic=CRITIC_STEPS[self.loss] if self.n_critic is None else int(self.n_critic),
                learning_rate=rate,
            ),
            rows,
            config=self._training(n_epochs=self.n_epochs or epochs_for(N_VISITS, len(rows))),
            key=train_key,
            state=Opponent.first(params.critic, rate),
            checkpoint=run.checkpoint,
            resume=run.resume,
            label="GAN",
        )
        self.history_ = result.history
        return GANParams(result.module, result.state.critic)

    def _sample(self, key, n):
        blocks = range(math.ceil(n / BLOCK_ROWS))
        generator = self.params_.generator
        return np.concatenate([_draw_new(jax.random.fold_in(key, b), generator, BLOCK_ROWS) for b in blocks])[:n]

    def critic_scores(self, X: Any) -> np.ndarray:
        """(n_rows,) the critic's score f of each row; of a good critic log p(x)/g(x), g the generator's density.

        With loss="wasserstein" it is no ratio of densities, but higher for rows than for samples all the same.
        """
        _, rows = self._rows(X)
        return by_blocks(partial(_scores, self.params_), rows)

    def noisy_evidence(
        self, X: Any, noise: Any, *, n_temperatures: int = 500, n_chains: int = 16, n_leapfrog: int = 10
    ) -> Evidence:
        """Evidence of the samples' distribution after Gaussian noise is added to their real columns.

        Wu, Burda, Salakhutdinov and Grosse (2017). p(x) = ∫ N(z; 0, I) N(x; G(z), noise²) dz, by annealed importance
        sampling over z, a lower bound in expectation. It is a figure of generator and noise together: state both.
        Discrete columns have their own distributions at G(z), and get no noise.

        Parameters
        ----------
        X : rows; NaN cells are unobserved.
        noise : standard deviation of the noise, in each column's units: a number, or one for each column.
        n_temperatures, n_chains, n_leapfrog : of annealing, and of its Hamiltonian moves.
        """
        from likely.models.latent.diagnosis.annealed_latents import ROWS_AT_ONCE, Effort, anneal, summed

        encoded, rows = self._rows(X)
        module = NoisyGenerator(self.params_.generator, self._log_noise(noise))
        effort, key = Effort(n_temperatures, n_chains, n_leapfrog), self._key("evidence")
        log_weights = by_blocks(
            lambda x, observed: anneal(key, module, x, observed, start="prior", effort=effort), rows, ROWS_AT_ONCE
        )
        values, replicates = summed(log_weights)
        method = f"annealed importance sampling over latents, noise {noise}, {effort}"
        return self._finished(Evidence.lower_bound(values, replicates, method=method), encoded)

    def _log_noise(self, noise: Any) -> Array:
        deviation = np.asarray(noise, np.float64)
        if deviation.shape not in ((), (self.schema_.n_columns,)) or not (deviation > 0).all():
            raise ValueError(
                f"`noise` must be a deviation above 0, or one for each of the {self.schema_.n_columns} columns, "
                f"got {noise!r}."
            )
        places = self.cells_.column_of[self.columns_.real_places]
        bent = [place for place in places if self.cells_.codecs[place] is not None]
        if bent:
            name = self.schema_.names[bent[0]]
            raise ValueError(f"column {name!r} is bent, and noise in its units has no one size: fit with Schema.real.")
        standard = (np.broadcast_to(deviation, (self.schema_.n_columns,)) / self.cells_.scaling.scale)[places]
        if (standard <= MIN_SCALE).any():
            raise ValueError(
                f"`noise` must be above {MIN_SCALE:g} of each real column's deviation, got {noise!r}: raise it."
            )
        return on_device(np.log(standard - MIN_SCALE), float_dtype())  # `log_density_at` adds MIN_SCALE again.
