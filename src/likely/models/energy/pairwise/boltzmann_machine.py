"""Boltzmann machine: p(v) = Σ_h exp(-β E(v, h)) / Z, E(s) = -½ sᵀW s - b·s over any graph of binary units.

Ackley, Hinton and Sejnowski (1985); learned by the exact gradient where the machine can be enumerated, else with
persistent chains (Tieleman, 2008), mean field, or pseudo-likelihood (Besag, 1975). Cost of an update: 2^units where it
is exact, else chains × units². log Z is exact where all but 20 units can be summed out, else an interval, by annealing.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from likely.contract.model import FitRun
from likely.contract.settings import Count, Positive, Whole, one_of
from likely.contract.trained import GradientTrained, epochs_for
from likely.models.energy.harmonium.machine import INPUT_SCALE
from likely.models.energy.pairwise.answers import Exact, Sampled, answers
from likely.models.energy.pairwise.learning import learn, to_centred, to_natural
from likely.models.energy.pairwise.machine import (
    UNITS,
    Layout,
    PairwiseParams,
    check_weights,
    from_binary,
    logits,
    make_layout,
    mean_field,
    to_binary,
)
from likely.models.energy.pairwise.pairwise_model import PairwiseModel
from likely.runtime import float_dtype, on_device
from likely.training import train
from likely.training.optimisers import Optimizer, Schedule

# Units up to which "auto" takes the exact gradient: 2^16 states are some hundredths of a second an update, and each
# further unit doubles that. Who asks for "exact" gets it up to 2^20, about a second an update.
EXACT_UNITS, MOST_EXACT_UNITS = 16, 20
GRAPHS = ("complete", "restricted", "semi-restricted")


class BoltzmannMachine(GradientTrained, PairwiseModel):
    """Boltzmann machine over any graph of binary units, some of them hidden.

    Parameters
    ----------
    n_components : hidden units.
    graph : which units are joined, visible ones first: "complete" (None is the same), "restricted" (visible with
        hidden only, an RBM), "semi-restricted" (all but hidden with hidden), or a symmetric (units, units) array of
        booleans.
    units : "01" or "pm1", what `params_` counts a unit as. The distribution is the same; `params_` differs.
    beta : inverse temperature: p ∝ exp(-beta E). Learning makes up for it; change it later to sharpen or to blur.
    objective : "exact", "pcd", "mean_field", "pseudo_likelihood" (only without hidden units), or "auto": "exact" up to
        16 units, else "pcd".
    n_gibbs_steps : sweeps of the chains an update.
    n_chains : persistent chains. They are kept with the model: samples start from them.
    centring : measure units from their means while learning; the machine is the same, it learns faster.
    n_epochs, batch_size, optimizer, learning_rate, schedule, warmup_steps, weight_decay, gradient_clip, averaging,
        memory_budget : see `likely.training.TrainingConfig`. optimizer="lbfgs" is for "exact" and "pseudo_likelihood",
        with batch_size=None.
    n_temperatures, n_ais_chains : of annealed importance sampling, where log Z cannot be enumerated.
    n_sweeps : Gibbs sweeps before a sample or a conditional is taken, where they cannot be drawn exactly.
    schema : what the columns are; None reads it off the data. All must be binary.
    random_state : seed.

    Notes
    -----
    Where log Z is estimated, `Evidence.values` and `upper` come from annealed importance sampling, which is optimistic
    on average, and `lower` from the reverse, which is pessimistic; the reverse starts from long chains rather than
    exact samples, so that side holds approximately.

    Examples
    --------
    Three units in a row, each pulling its neighbour with weight 2: the outer two agree through the middle one.

    >>> import numpy as np
    >>> row = BoltzmannMachine.from_weights([[0, 2, 0], [2, 0, 2], [0, 2, 0]], [-1, -2, -1])
    >>> row.condition([[1, np.nan, np.nan], [0, np.nan, np.nan]]).mean().round(2).tolist()
    [[1.0, 0.73, 0.61], [0.0, 0.27, 0.39]]
    """

    n_components: Whole = 0
    _: KW_ONLY
    graph: Annotated[Any, one_of(GRAPHS), "array-like"] | None = None
    units: Annotated[str, one_of(UNITS)] = "01"
    beta: Positive = 1.0
    objective: Literal["auto", "exact", "pcd", "mean_field", "pseudo_likelihood"] = "auto"
    n_gibbs_steps: Count = 1
    n_chains: Count = 100
    centring: bool = True
    batch_size: Count | None = 20  # type: ignore[assignment]  # None, all rows, is for "lbfgs"
    optimizer: Optimizer = "sgd"
    schedule: Schedule = "linear"

    _resumable = True
    _also_in_log_z: ClassVar[tuple[str, ...]] = ("units", "beta")

    @classmethod
    def from_weights(cls, weights: Any, bias: Any = None, **parameters: Any) -> BoltzmannMachine:
        """A machine with given weights (units, units) and biases, in the convention of `units`, visible units first.

        Parameters
        ----------
        weights : symmetric, zero on the diagonal; visible units first, then `n_components` hidden ones.
        bias : (units,) or None for zeros.
        parameters : hyper-parameters; `graph` is read off the weights unless it is given.

        Examples
        --------
        >>> pull = BoltzmannMachine.from_weights([[0, 1], [1, 0]], units="pm1")
        >>> pull.score_samples([[1, 1], [0, 1]]).round(3).tolist()  # log of e / (2e + 2/e), and e² less
        [-0.82, -2.82]
        """
        weights, bias = check_weights(weights, bias)
        model = cls(**{"graph": weights != 0} | parameters)
        n_visible = len(weights) - model.n_components
        if n_visible < 1:
            raise ValueError(f"`n_components` must leave a visible unit of {len(weights)}, got {model.n_components}.")
        model._adopt(n_visible)
        if (weights != 0)[~_adjacency(model.graph, n_visible, model.n_components)].any():
            raise ValueError("`weights` must be zero where the graph has no edge: leave `graph` out, or mend it.")
        model.params_ = model._given(on_device(weights, float_dtype()), on_device(bias, float_dtype()))
        return model

    def _given(self, weights: jax.Array, bias: jax.Array) -> PairwiseParams:
        """The machine with chains that start at random; sampling takes them through `n_sweeps` sweeps."""
        chains = jax.random.bernoulli(self._key("fit"), 0.5, (self.n_chains, len(bias)))
        return PairwiseParams(weights, bias, chains)

    # ------------------------------------------------------------------------ learning
    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # A sweep of the chains goes unit by unit: for many columns the objective that needs none.
        more = {} if n_columns <= 200 else {"objective": "pseudo_likelihood", "learning_rate": 0.02}
        return {"n_epochs": epochs_for(100_000, n_rows), "batch_size": 50} | more

    def _init(self, key, columns):
        return _small_machine(key, columns.n_columns, self.n_components, self.n_chains)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> PairwiseParams:
        columns = self.columns_
        graph = _adjacency(self.graph, columns.n_columns, self.n_components)
        rate = 0.2 if self.learning_rate is None and self.optimizer == "sgd" else self.learning_rate
        objective, config = self._objective(len(graph)), self._training(learning_rate=rate)
        self._check_optimizer(objective)
        init_key, chain_key, train_key = jax.random.split(key, 3)
        mean = _means(rows, self.n_components)
        offsets = mean if self.centring else on_device(np.zeros(mean.shape, mean.dtype))
        first = _near_independent(self._init(init_key, columns), graph, mean, offsets)
        learning = partial(
            learn,
            layout=make_layout(graph, columns.n_columns),
            graph=on_device(graph),
            offsets=offsets,
            method=objective,
            n_gibbs_steps=self.n_gibbs_steps,
        )
        result = train(
            first,
            learning,
            rows,
            config=config,
            key=train_key,
            state=self._first_chains(chain_key, rows, mean, objective),
            checkpoint=run.checkpoint,
            resume=run.resume,
            label="BoltzmannMachine",
        )
        self.history_ = result.history
        return from_binary(_as_learned(result.module, result.state, offsets), self.units, self.beta)

    def _first_chains(self, key: jax.Array, rows: np.ndarray, mean: jax.Array, objective: str) -> jax.Array:
        """Independent units; rows of the data for "pseudo_likelihood", which never moves its chains."""
        pick, draw = jax.random.split(key)
        chains = _independent_units(draw, mean, self.n_chains)
        if objective != "pseudo_likelihood":
            return chains
        chosen = rows[np.asarray(jax.random.randint(pick, (self.n_chains,), 0, len(rows)))]
        return jnp.where(np.isnan(chosen), chains, on_device(np.nan_to_num(chosen), mean.dtype))

    def _objective(self, n_units: int) -> Any:
        if self.objective == "auto":
            return "exact" if n_units <= EXACT_UNITS else "pcd"
        if self.objective == "pseudo_likelihood" and self.n_components:
            raise ValueError(
                f"`objective`='pseudo_likelihood' needs n_components=0, got {self.n_components}: hidden units have no "
                "observed value to predict. Use 'pcd'."
            )
        if self.objective == "exact" and n_units > MOST_EXACT_UNITS:
            raise ValueError(
                f"`objective`='exact' takes at most {MOST_EXACT_UNITS} units, got {n_units}: an update would sum over "
                f"2^{n_units} states. Use 'pcd', 'mean_field' or 'pseudo_likelihood'."
            )
        return self.objective

    def _check_optimizer(self, objective: str) -> None:
        if self.optimizer == "lbfgs" and objective in ("pcd", "mean_field"):
            raise ValueError(
                f"`optimizer`='lbfgs' searches along a line and needs a loss without noise; {objective!r} has noise: "
                "choose 'sgd' or 'adam', or objective='pseudo_likelihood'."
            )

    # ------------------------------------------------------------------------ answers
    def _layout(self) -> Layout:
        graph = _adjacency(self.graph, self.columns_.n_columns, self.n_components)
        return make_layout(graph, self.columns_.n_columns)

    def _answers(self) -> Exact | Sampled:
        machine = to_binary(self.params_, self.units, self.beta)[0]
        return answers(machine, self._layout(), self._ais_settings())

    # ------------------------------------------------------------------------ codes
    def _encode(self, rows, key):
        if not self.n_components:
            raise ValueError("`transform` needs hidden units to read the code from: fit with `n_components` above 0.")
        return self._answers().hidden(rows)

    def _decode(self, codes):
        """The visible units' mean field with the hidden ones held."""
        machine, layout = to_binary(self.params_, self.units, self.beta)[0], self._layout()
        states = jnp.pad(jnp.asarray(codes, float_dtype()), ((0, 0), (layout.n_visible, 0)))
        held = jnp.broadcast_to((jnp.arange(states.shape[1]) >= layout.n_visible)[None], states.shape)
        return mean_field(machine, states, held, layout)[:, : layout.n_visible]

    def _reconstruct(self, rows, key):
        """Through the code; without hidden units, each cell as all the others would have it."""
        if self.n_components:
            return self._decode(self._encode(rows, key))
        filled = on_device(self._condition(rows, key).mean)
        return jax.nn.sigmoid(logits(to_binary(self.params_, self.units, self.beta)[0], filled))


# What a fit does before and after training, as a few programs: one operation after the other would be thirty, which
# take half a second to compile for every new number of units.
@partial(jax.jit, static_argnums=(1, 2, 3))
def _small_machine(key: jax.Array, n_visible: int, n_hidden: int, n_chains: int) -> PairwiseParams:
    """Small weights of hidden units, no others."""
    n, dtype = n_visible + n_hidden, float_dtype()
    hidden = jnp.arange(n) >= n_visible
    scale = INPUT_SCALE / np.sqrt(n)
    noise = scale * jnp.triu(jax.random.normal(key, (n, n), dtype), 1)
    weights = jnp.where(hidden[:, None] | hidden[None, :], noise + noise.T, 0)
    return PairwiseParams(weights, jnp.zeros(n, dtype), jnp.zeros((n_chains, n), bool))


@jax.jit
def _near_independent(small: PairwiseParams, graph: np.ndarray, mean: jax.Array, offsets: jax.Array) -> PairwiseParams:
    """Centred parameters of a machine near independent units with these means."""
    start = PairwiseParams(jnp.where(graph, small.weights, 0), jax.scipy.special.logit(mean), small.chains)
    return to_centred(to_natural(start, mean), offsets)


@partial(jax.jit, static_argnums=2)
def _independent_units(key: jax.Array, mean: jax.Array, n: int) -> jax.Array:
    return jax.random.bernoulli(key, mean[None], (n, len(mean))).astype(mean.dtype)


@jax.jit
def _as_learned(centred: PairwiseParams, chains: jax.Array, offsets: jax.Array) -> PairwiseParams:
    """The plain parameters of what training found, with its chains."""
    return eqx.tree_at(lambda p: p.chains, to_natural(centred, offsets), chains.astype(bool))


def _means(rows: np.ndarray, n_hidden: int) -> jax.Array:
    """The units' means: visible ones with one row of ignorance added, hidden ones 1/2."""
    seen = (~np.isnan(rows)).sum(axis=0)
    visible = (np.nansum(rows, axis=0, dtype=np.float64) + 0.5) / (seen + 1)
    return on_device(np.append(visible, np.full(n_hidden, 0.5)), float_dtype())


def _adjacency(graph: Any, n_visible: int, n_hidden: int) -> np.ndarray:
    """(units, units) booleans from the `graph` parameter."""
    n = n_visible + n_hidden
    hidden = np.arange(n) >= n_visible
    others = ~np.eye(n, dtype=bool)
    if graph is None or isinstance(graph, str):
        apart = {
            "restricted": hidden[:, None] == hidden[None, :],
            "semi-restricted": hidden[:, None] & hidden[None, :],
        }
        return others & ~apart.get(graph or "complete", np.zeros((n, n), bool))
    edges = np.asarray(graph)
    if edges.shape != (n, n):
        raise ValueError(
            f"`graph` must be ({n}, {n}) for {n_visible} visible and {n_hidden} hidden units, got shape {edges.shape}."
        )
    edges = edges.astype(bool)
    if (edges != edges.T).any() or np.diag(edges).any():
        raise ValueError("`graph` must be symmetric, with no unit joined to itself.")
    return edges
