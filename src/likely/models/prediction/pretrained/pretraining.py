"""Greedy layer-wise pretraining: each layer learns the features that the layers below give the rows, without labels.

Hinton, Osindero and Teh (2006) with restricted Boltzmann machines; Bengio, Lamblin, Popovici and Larochelle (2007) with
autoencoders. Cost: of each layer an RBM or a one-layer autoencoder, and a pass of the rows up to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np

from likely.columns import Columns
from likely.contract.model import InStandardUnits
from likely.contract.settings import are_sizes, seed_of
from likely.models.energy.harmonium.rbm import RBM, moments
from likely.models.prediction.pretrained.denoising import denoising_loss, first_autoencoder
from likely.models.prediction.pretrained.inputs import Table
from likely.models.prediction.pretrained.network import Encoder, Layer
from likely.runtime import by_blocks
from likely.training import TrainingConfig, train

if TYPE_CHECKING:
    from likely.models.prediction.pretrained.classifier import PretrainedClassifier

KINDS = ("rbm", "autoencoder")
AUTOENCODER_RATE = 1e-3  # of Adam, where none is given

History = dict[str, list[float]]


@dataclass(frozen=True)
class Recipe:
    """How each layer learns; wrong settings raise here, before any work. See `pretrain` for what they mean."""

    kind: str = "rbm"
    n_epochs: int = 50
    batch_size: int = 20
    learning_rate: float | None = None
    weight_decay: float = 0.0
    sparsity_target: float | None = None
    sparsity_strength: float = 5.0
    corruption: float = 0.25

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"`kind` must be one of {', '.join(KINDS)}, got {self.kind!r}.")
        if not 0 <= self.corruption < 1:
            raise ValueError(f"`corruption` must be a share of at least 0 and below 1, got {self.corruption!r}.")
        if self.sparsity_target is not None and not 0 < self.sparsity_target < 1:
            raise ValueError(f"`sparsity_target` must lie between 0 and 1, or be None, got {self.sparsity_target!r}.")
        if self.sparsity_strength < 0:
            raise ValueError(f"`sparsity_strength` must be at least 0, got {self.sparsity_strength!r}.")
        _ = self.config

    @property
    def config(self) -> TrainingConfig:
        """Of an autoencoder's training; machines take the same numbers."""
        return TrainingConfig(
            n_epochs=self.n_epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate or AUTOENCODER_RATE,
            weight_decay=self.weight_decay,
            schedule="linear",
        )


@dataclass(frozen=True, repr=False, eq=False)
class PretrainedStack:
    """Layers learned without labels, by `likely.pretrain`.

    Attributes
    ----------
    table : the columns that the lowest layer reads, and their units.
    encoder : the layers, a frozen module of arrays.
    kind : "rbm" or "autoencoder".
    histories : learning curves, a dictionary of lists for each layer.
    """

    table: Table
    encoder: Encoder
    kind: str
    histories: tuple[History, ...]

    def __repr__(self) -> str:
        sizes = (self.table.schema.n_columns, *self.layers)
        return f"PretrainedStack({'-'.join(map(str, sizes))}, {self.kind!r})"

    @property
    def layers(self) -> tuple[int, ...]:
        """Units of each layer, from the lowest on."""
        return self.encoder.sizes

    def transform(self, X: Any) -> np.ndarray:
        """(n_rows, units) probabilities of the highest layer; NaN cells of X are read as their column's mean."""
        return encode(self.encoder, self.table.rows(X))

    def classifier(self, **settings: Any) -> PretrainedClassifier:
        """A classifier whose fine-tuning starts from these layers; settings as of `likely.PretrainedClassifier`."""
        from likely.models.prediction.pretrained.classifier import PretrainedClassifier

        own: dict[str, Any] = {"schema": self.table.schema, "as_probabilities": self.table.as_probabilities}
        return PretrainedClassifier(self.layers, kind=self.kind, pretrain=self, **(own | settings))


def pretrain(
    X: Any,
    layers: Any = (500, 500, 1000),
    *,
    kind: str = "rbm",
    n_epochs: int = 50,
    batch_size: int = 20,
    learning_rate: float | None = None,
    weight_decay: float = 0.0,
    sparsity_target: float | None = None,
    sparsity_strength: float = 5.0,
    corruption: float = 0.25,
    as_probabilities: bool = False,
    schema: Any = None,
    random_state: Any = None,
) -> PretrainedStack:
    """Learn layers of features from rows without labels, from the lowest to the highest.

    Parameters
    ----------
    X : (n_rows, n_columns) array or data frame of any columns; NaN/None cells are unobserved.
    layers : units of each layer.
    kind : "rbm", each layer a restricted Boltzmann machine on the probabilities of the one below, by contrastive
        divergence; or "autoencoder", each a denoising autoencoder with the same weights both ways.
    n_epochs, batch_size, weight_decay : of each layer, see `likely.training.TrainingConfig`.
    learning_rate : None takes the RBM's own, or Adam's 0.001 for autoencoders; it falls linearly to 0.
    sparsity_target, sparsity_strength : mean activation that an RBM's hidden units are drawn to, and how strongly;
        None for none. For pictures and layers of hundreds of units, 0.1 gives better features.
    corruption : share of the cells that an autoencoder must do without.
    as_probabilities : real columns hold numbers from 0 to 1, such as grey pixels, and each is read as the probability
        of a binary cell; otherwise real columns are Gaussian, in units of their deviation.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Returns
    -------
    A `PretrainedStack`: `transform` gives the features of rows, `classifier` a network to be taught with labels.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> stack = likely.pretrain(digits.train, layers=(64, 32), n_epochs=5, random_state=0)
    >>> stack, stack.transform(digits.test).shape
    (PretrainedStack(64-64-32, 'rbm'), (500, 32))
    """
    sizes = check_layers(layers, least=1)
    recipe = Recipe(
        kind=kind,
        n_epochs=n_epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        sparsity_target=sparsity_target,
        sparsity_strength=sparsity_strength,
        corruption=corruption,
    )
    table, rows = Table.of(X, schema, as_probabilities)
    encoder, histories = learn_layers(rows, table.columns, sizes, recipe, seed_of(random_state))
    return PretrainedStack(table, encoder, kind, histories)


def learn_layers(
    rows: np.ndarray, columns: Columns, sizes: tuple[int, ...], recipe: Recipe, seed: int
) -> tuple[Encoder, tuple[History, ...]]:
    """The layers that rows in standard units teach, one after the other, and how each learned."""
    mean, _ = moments(rows, columns)
    encoder = Encoder(mean[~columns.is_quadratic], (), columns)
    learn = _learn_machine if recipe.kind == "rbm" else _learn_autoencoder
    histories, below, level_columns = [], rows, columns
    for number, size in enumerate(sizes):
        # The lowest machine has the key of an RBM with this seed, and so is that RBM.
        key = jax.random.fold_in(jax.random.key(seed), number)
        layer, history = learn(below, level_columns, size, key, recipe)
        if number == 0:
            layer = Layer(layer.weights, layer.bias + encoder.offset @ layer.weights)  # it reads centred features
        encoder = Encoder(encoder.offset, (*encoder.layers, layer), columns)
        histories.append(history)
        if number + 1 < len(sizes):
            below, level_columns = encode(encoder, rows), Columns(("binary",) * size, (1,) * size)
    return encoder, tuple(histories)


def encode(encoder: Encoder, rows: np.ndarray) -> np.ndarray:
    """(n, k) what the layers make of rows in standard units."""
    return by_blocks(lambda x, observed: _encoded(encoder, x, observed), rows)


def check_layers(layers: Any, *, least: int) -> tuple[int, ...]:
    """Sizes of layers as a tuple; anything else raises."""
    if not isinstance(layers, tuple | list) or len(layers) < least or not are_sizes(layers):
        many = "one hidden layer or more" if least else "the hidden layers"
        raise ValueError(f"`layers` must hold the sizes of {many}, whole numbers of at least 1, got {layers!r}.")
    return tuple(int(n) for n in layers)


def _learn_machine(
    rows: np.ndarray, columns: Columns, size: int, key: jax.Array, recipe: Recipe
) -> tuple[Layer, History]:
    """A layer that reads features as they are: the way up through an RBM."""
    names = ("n_epochs", "batch_size", "learning_rate", "weight_decay", "sparsity_target", "sparsity_strength")
    machine = RBM(size, objective="cd", n_chains=1, **{name: getattr(recipe, name) for name in names})
    # Probabilities are no binary cells, which is why they are not given to it by `fit`.
    params = InStandardUnits(machine).fit(rows, columns, key)
    return Layer(params.weights[~columns.is_quadratic], params.hidden_bias), machine.history_


def _learn_autoencoder(
    rows: np.ndarray, columns: Columns, size: int, key: jax.Array, recipe: Recipe
) -> tuple[Layer, History]:
    """The same through a denoising autoencoder."""
    init_key, train_key = jax.random.split(key)
    module = first_autoencoder(init_key, columns, size, *moments(rows, columns))
    objective = partial(denoising_loss, columns=columns, corruption=float(recipe.corruption))
    result = train(module, objective, rows, config=recipe.config, key=train_key, label="autoencoder")
    layer, offset = result.module.as_layer(), result.module.offset
    return Layer(layer.weights, layer.bias - offset @ layer.weights), result.history


@eqx.filter_jit
def _encoded(encoder: Encoder, x: jax.Array, observed: jax.Array | None) -> jax.Array:
    return encoder(x, observed)
