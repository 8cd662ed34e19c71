"""What a training run works on: everything that is settled before the first step and does not change after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array

from likely.placement import device_mesh, local, place, placed
from likely.training.batches import Feed
from likely.training.config import TrainingConfig
from likely.training.interface import outline, prepare
from likely.training.program import Carry, Inputs, Numbers, Program, comparable, first_state, layout, split
from likely.training.validation import Validator


@dataclass(frozen=True)
class Plan:
    """The settled part of a run."""

    config: TrainingConfig
    key: Any  # the run's; all others come from it
    params: Any  # trainable arrays before the first step
    rest: Any  # the module without them
    state: Any  # the objective's, before the first step
    feed: Feed
    program: Program
    inputs: Inputs
    zero_sums: dict[str, Array]
    validator: Validator | None
    mesh: Mesh | None

    @property
    def n_steps(self) -> int:
        return self.config.n_epochs * self.feed.steps_per_epoch

    def module(self, carry: Carry) -> Any:
        """The module as it is now, averaged if asked for."""
        return self.joined(self.outcome(carry))

    def joined(self, params: Any) -> Any:
        """The module with these trainable arrays."""
        return eqx.combine(local(params), self.rest)

    def outcome(self, carry: Carry) -> Any:
        """The trainable arrays that are validated and returned."""
        return carry.averaged if self.program.averages else carry.params

    def first_carry(self, numbers: Numbers) -> Carry:
        """The carry before the first step; the numbers are the inputs', as an argument so that they may be traced."""
        return Carry(
            params=self.params,
            optimiser=first_state(self.program.optimiser)(self.params, numbers),
            state=self.state,
            averaged=self.params if self.program.averages else None,
            step=place(np.int32(0), self.mesh),
            sums=self.zero_sums,
            ok=place(np.bool_(True), self.mesh),
        )

    def laid_out(self, carry: Carry) -> Carry:
        """The carry on the devices."""
        return jax.device_put(carry) if self.mesh is None else placed(carry, layout(carry, self.mesh))


def make_plan(
    module: Any,
    objective: Any,
    rows: Any,
    *,
    config: TrainingConfig,
    key: Any,
    state: Any,
    validate: Any,
    valid_rows: Any,
    project: Any,
) -> Plan:
    """Check what was given, and settle everything."""
    mesh, objective = device_mesh(), comparable(objective)
    key, params, rest, state, dtype = prepare(module, key, state)
    # Where there is validation, spans end at the epochs that are validated: it looks at what a span leaves.
    aligned = None if validate is None else config.validate_every
    feed = _feed(rows, config, key, dtype, aligned, mesh)
    names, sum_dtype = outline(module, objective, feed, key, state)
    arrays, static = split((rest, objective, comparable(project)))
    validator = None
    if validate is not None:
        validator = Validator(rest, validate, valid_rows, config=config, dtype=dtype, key=key, mesh=mesh)
    return Plan(
        config=config,
        key=key,
        params=params,
        rest=rest,
        state=state,
        feed=feed,
        program=Program(static, config.optimiser_spec(), config.averaging is not None, feed.whole, mesh),
        inputs=Inputs(
            place(arrays, mesh), place(key, mesh), config.numbers(feed.steps_per_epoch), feed.steps_per_epoch
        ),
        zero_sums=place({name: np.zeros(feed.epochs_per_span, sum_dtype) for name in names}, mesh),
        validator=validator,
        mesh=mesh,
    )


def _feed(rows: Any, config: TrainingConfig, key: Array, dtype: Any, aligned: int | None, mesh: Mesh | None) -> Feed:
    return Feed(
        rows,
        dtype=dtype,
        batch_size=config.batch_size,
        n_epochs=config.n_epochs,
        budget=config.room,
        aligned=aligned,
        words=np.asarray(jax.random.key_data(key)).ravel().tolist(),
        mesh=mesh,
        shuffle=config.shuffle,
    )
