"""Neural Turing machine: a network with a memory that it reads and writes, p(y | x) = Π_t Π_b Bernoulli(y_tb | x).

Graves, Wayne and Danihelka (2014), with the write M_i ← (1 − β_i) M_i + β_i w. A sequence of bit vectors comes in, a
flag ends it, and as many steps as there are answers follow, in which nothing is shown. Cost of a step and row: about
10 × slots × width + 2 × weights floating-point operations; a batch's steps come one after the other.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Annotated, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.contract.sequence_predictor import SequencePredictor, grouped
from likely.contract.settings import Count, Positive, one_of
from likely.models.language.pairs.tokens import check_as_many
from likely.models.language.pairs.turing_network import CONTROLLERS, TuringNetwork, script, turing_losses
from likely.training.optimisers import Schedule


class Trajectory(NamedTuple):
    """What a machine did on one sequence, step by step; the flag is the step after the inputs."""

    inputs: np.ndarray  # (t, bits + 1) the flag last
    outputs: np.ndarray  # (t, bits) probabilities; asked for after the flag only
    reading: np.ndarray  # (t, slots)
    writing: np.ndarray  # (t, slots)
    memory: np.ndarray  # (t, slots, width)


class NeuralTuringMachine(SequencePredictor):
    """Sequences of bit vectors from sequences of bit vectors, by way of a memory.

    Parameters
    ----------
    n_slots, width : of the memory. Nothing that is learned depends on n_slots.
    n_hidden : units of the controller. controller : "lstm", or "feedforward", which remembers by the memory alone.
    n_epochs, batch_size, learning_rate, schedule, gradient_clip : see `likely.training.TrainingConfig`.
    patience : epochs without a better loss on `valid` after which to stop.
    random_state : seed.
    """

    n_slots: Count = 64
    width: Count = 20
    _: KW_ONLY
    n_hidden: Count = 100
    controller: Annotated[str, one_of(CONTROLLERS)] = "lstm"
    batch_size: Count = 16
    learning_rate: Positive = 1e-3
    schedule: Schedule = "constant"
    gradient_clip: Positive | None = 10.0

    _losses = staticmethod(turing_losses)
    _counted = "every bit of the target"

    def predict_proba(self, X: Any, lengths: Any = None) -> list[np.ndarray]:
        """Of each sequence, (length, bits) probabilities of ones.

        Parameters
        ----------
        X : sequences (t, bits) of bits.
        lengths : how many vectors each answer has; as many as its input where None.
        """
        check_is_fitted(self)
        inputs = _bits(X, "X", self.n_inputs_)
        lengths = np.asarray([len(x) for x in inputs] if lengths is None else lengths)
        if lengths.shape != (len(inputs),) or lengths.min() < 1:
            raise ValueError(f"`lengths` must hold a whole number of at least 1 for each of {len(inputs)} inputs.")
        places = [np.zeros((n, self.n_outputs_)) for n in lengths]
        answers = grouped(partial(_answers, self.params_), inputs, places)
        return [np.asarray(answer[:n], np.float64) for answer, n in zip(answers, lengths, strict=True)]

    def predict(self, X: Any, lengths: Any = None) -> list[np.ndarray]:
        """Of each sequence, (length, bits) the likelier bits; arguments as of `predict_proba`."""
        return [(answer > 0.5).astype(np.int8) for answer in self.predict_proba(X, lengths)]

    def score(self, X: Any, y: Any) -> float:
        """Share of all bits of y that are predicted right."""
        check_is_fitted(self)
        _, targets = self._pairs(X, y)
        found = self.predict(X, [len(target) for target in targets])
        return float(np.concatenate([(a == b).ravel() for a, b in zip(found, targets, strict=True)]).mean())

    def trajectory(self, x: Any, length: int | None = None) -> Trajectory:
        """Everything that the machine does on one sequence (t, bits), with as many answers as asked for."""
        check_is_fitted(self)
        (bits,) = _bits([x], "X", self.n_inputs_)
        found = _trace(self.params_, jnp.asarray(bits.ravel()[None], jnp.float32), length or len(bits))
        return Trajectory(*(np.asarray(part) for part in found))

    # ------------------------------------------------------------------------- hooks
    def _learn(self, X: Any, y: Any) -> None:
        self.n_inputs_, self.n_outputs_ = (_bits(part, name)[0].shape[1] for part, name in ((X, "X"), (y, "y")))

    def _pairs(self, X: Any, y: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
        inputs, targets = _bits(X, "X", self.n_inputs_), _bits(y, "y", self.n_outputs_)
        check_as_many(inputs, targets)
        return inputs, targets

    def _network(self, key: jax.Array) -> TuringNetwork:
        return TuringNetwork.build(
            key,
            self.n_inputs_,
            self.n_outputs_,
            n_slots=self.n_slots,
            width=self.width,
            n_hidden=self.n_hidden,
            controller=self.controller,
        )


def _bits(X: Any, name: str, n_bits: int | None = None) -> list[np.ndarray]:
    """Sequences as matrices (t, bits) of 0 and 1."""
    if isinstance(X, str) or not hasattr(X, "__len__"):
        raise ValueError(f"{name} must be a list of sequences, matrices (steps, bits), got {X!r}.")
    if len(X) == 0:
        raise ValueError(f"{name} has no sequences.")
    sequences = [_matrix(x, f"sequence {number} of {name}") for number, x in enumerate(X)]
    n_bits = n_bits or (sequences[0].shape[1] if sequences[0].ndim == 2 else 1)
    for number, sequence in enumerate(sequences):
        if sequence.ndim != 2 or len(sequence) == 0 or sequence.shape[1] != n_bits:
            raise ValueError(
                f"sequence {number} of {name} must be a matrix (steps, {n_bits}) with at least one step, "
                f"got shape {sequence.shape}."
            )
        if not np.isin(sequence, (0, 1)).all():
            raise ValueError(f"sequence {number} of {name} must hold bits, 0 or 1.")
    return [sequence.astype(np.float32) for sequence in sequences]


def _matrix(x: Any, which: str) -> np.ndarray:
    try:
        return np.asarray(x)
    except ValueError:
        raise ValueError(f"{which} must be a matrix (steps, bits), and its steps are of different lengths.") from None


@eqx.filter_jit
def _answers(network: TuringNetwork, inputs: jax.Array, places: jax.Array) -> jax.Array:
    asked = places.reshape(len(places), -1, network.n_outputs)[..., 0] >= 0
    x, there = script(network, inputs, asked.sum(axis=1), asked.shape[1])
    return jax.nn.sigmoid(network.run(x, there)[0][:, -asked.shape[1] :])


@eqx.filter_jit
def _trace(network: TuringNetwork, inputs: jax.Array, length: int) -> tuple[jax.Array, ...]:
    x, there = script(network, inputs, jnp.array([length]), length)
    logits, states = network.run(x, there, trace=True)
    assert states is not None  # for the type checker
    reading, writing = states.addresses[:, 0, 0], states.addresses[:, 0, 1]
    return x[0], jax.nn.sigmoid(logits[0]), reading, writing, states.memory[:, 0]
