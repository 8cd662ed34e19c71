"""The compiled part of training: many steps in one loop on the device, and the validation of all rows.

`run` takes steps [start, stop) of a span. Both ends are inputs of the program, and a step's randomness comes from its
number, so however a span is cut into segments, the same program computes the same bits.

The loop stops at the first step whose loss or new parameters are not finite. It does not keep the old parameters beside
the new ones to go back to, which would cost a pass over all arrays at every step (13% of a small network's step here):
the caller still has the segment's first carry and runs up to that step again. For the same reason the carry is not
donated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

from likely.placement import by_rows, everywhere
from likely.training.batches import Batch
from likely.training.optimisers import OptimiserSpec, make_optimiser

Numbers = Mapping[str, float | Array]  # They are given as numbers, and are arrays inside a program.
# Streams of the run's key, so that validating more often changes no step. The order of rows has randomness of its own,
# made in NumPy of the key's words (`Feed`).
STEPS, VALIDATION = 0, 1


class Carry(eqx.Module):
    """All that changes from step to step."""

    params: Any  # the trainable arrays of the module, None elsewhere
    optimiser: Any
    state: Any  # the objective's
    averaged: Any  # running average of params, or None
    step: Int[Array, ""]  # taken since the start
    sums: dict[str, Float[Array, " epochs"]]  # loss and metrics, summed over the steps of each epoch of the span
    ok: Bool[Array, ""]


class Inputs(eqx.Module):
    """All that does not change: arrays of the module that are not trained, of the objective; the key; numbers."""

    arrays: Any
    key: Array
    numbers: Numbers
    steps_per_epoch: int | Array = 1


@dataclass(frozen=True)
class Static:
    """What a pytree holds besides arrays, hashable: equal ones share a compiled program.

    `run` is cached by it, and arrays have no hash. They are inputs of the program: as constants in it, another module
    of the same shape would need a program of its own.
    """

    structure: Any
    leaves: tuple[tuple[type, Any], ...]  # with their types: 1, 1.0 and True are equal, but not the same program


@dataclass(frozen=True)
class Program:
    """What `run` is compiled for, shapes apart."""

    static: Static  # of (module without trainable arrays, objective, project)
    optimiser: OptimiserSpec
    averages: bool
    whole: bool  # the batch is all rows
    mesh: Mesh | None


@dataclass(frozen=True)
class ValidationProgram:
    """What `validation` is compiled for."""

    static: Static  # of (module without trainable arrays, validate)
    mesh: Mesh | None


def split(tree: Any) -> tuple[Any, Static]:
    """A pytree's arrays, and the rest of it."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    leaves, structure = jax.tree.flatten(rest)
    return arrays, Static(structure, tuple((type(leaf), leaf) for leaf in leaves))


def join(arrays: Any, static: Static) -> Any:
    """The pytree that was split."""
    return eqx.combine(arrays, jax.tree.unflatten(static.structure, [leaf for _, leaf in static.leaves]))


def comparable(function: Any) -> Any:
    """Equal partial functions of equal arguments compare equal as pytrees, and then share a program."""
    if isinstance(function, functools.partial) and not isinstance(function, jax.tree_util.Partial):
        return jax.tree_util.Partial(function.func, *function.args, **function.keywords)
    return function


@functools.lru_cache(maxsize=32)  # The cache is bounded, since a program keeps the functions it was made from alive.
def run(program: Program) -> Callable[[Carry, Inputs, Batch, Array, int, int], Carry]:
    """The compiled (carry, inputs, data, order, start, stop) -> carry."""

    def steps(carry: Carry, inputs: Inputs, data: Batch, order: Array, start: int | Array, stop: int | Array) -> Carry:
        # `stop` is an input, so this is a `while_loop`: a `scan` would be compiled for each length anew.
        def go_on(position: tuple[Array, Carry]) -> Array:
            return (position[0] < stop) & position[1].ok

        def body(position: tuple[Array, Carry]) -> tuple[Array, Carry]:
            number, carry = position
            return number + 1, take_step(program, carry, inputs, select(program, data, order, number), number)

        _, carry = lax.while_loop(go_on, body, (jnp.asarray(start, dtype=jnp.int32), carry))
        return pinned(carry, program.mesh)

    return jax.jit(steps)


@functools.lru_cache(maxsize=32)
def first_state(spec: OptimiserSpec) -> Callable[[Any, Numbers], Any]:
    """The compiled (params, numbers) -> state of the optimiser before the first step."""

    def init(params: Any, numbers: Numbers) -> Any:
        state = make_optimiser(spec, numbers).init(params)
        # Numbers that Optax starts from may be weakly typed, and the loop returns definite types: the second segment
        # would see other types than the first, and be compiled again.
        return jax.tree.map(lambda a: lax.convert_element_type(a, a.dtype), state)

    return jax.jit(init)


def take_step(program: Program, carry: Carry, inputs: Inputs, batch: Batch, number: Array) -> Carry:
    """One update of everything."""
    import optax  # here and where optimisers are made: models that need none would wait for it

    loss_of, optimiser, project = parts(program, carry, inputs, batch)
    # `value`, `grad` and `value_fn` are for L-BFGS, whose line search evaluates the loss at other parameters.
    (loss, (state, metrics)), gradient = jax.value_and_grad(loss_of, has_aux=True)(carry.params)
    updates, optimiser_state = optimiser.update(
        gradient, carry.optimiser, carry.params, value=loss, grad=gradient, value_fn=lambda p: loss_of(p)[0]
    )
    params = optax.apply_updates(carry.params, updates)
    ok = jnp.isfinite(loss) & all_finite(params)
    if project is not None:
        # The parameters are looked at before the projection, too, which may hide an infinity.
        params = project(params)
        ok = ok & all_finite(params)
    epoch = number // inputs.steps_per_epoch
    values = {**metrics, "loss": loss}
    sums = {name: total.at[epoch].add(jnp.asarray(values[name], total.dtype)) for name, total in carry.sums.items()}
    averaged = _average(carry, params, inputs.numbers["log_decay"]) if program.averages else None
    return Carry(params, optimiser_state, state, averaged, carry.step + 1, sums, ok)


def parts(program: Program, carry: Carry, inputs: Inputs, batch: Batch) -> tuple[Callable, Any, Callable | None]:
    """Loss as a function of the trainable arrays, the optimiser, and the projection of trainable arrays."""
    rest, objective, project = join(inputs.arrays, program.static)
    key = jax.random.fold_in(jax.random.fold_in(inputs.key, STEPS), carry.step)

    def loss_of(params: Any) -> tuple[Array, Any]:
        return objective(eqx.combine(params, rest), batch, key, carry.state)

    def projected(params: Any) -> Any:
        return eqx.filter(project(eqx.combine(params, rest)), eqx.is_inexact_array)

    return loss_of, make_optimiser(program.optimiser, inputs.numbers), None if project is None else projected


def select(program: Program, data: Batch, order: Array, number: Array) -> Batch:
    """The rows of a step, shared out over the devices."""
    if program.whole:
        return _shared_out(data, program.mesh)
    if program.mesh is not None:  # The rows come in the order of the steps.
        return _shared_out(jax.tree.map(lambda a: a[number], data), program.mesh)
    # Row number -1 is padding, which reads row 0 and weighs nothing.
    rows = order[number]
    weight = (rows >= 0).astype(data.weight.dtype)
    x, observed = jax.tree.map(lambda a: a[jnp.maximum(rows, 0)], (data.x, data.observed))
    return _shared_out(Batch(x, observed, weight), program.mesh)


def all_finite(tree: Any) -> Array:
    """Whether all entries are finite.

    By products with vectors of ones, which run at the speed of memory, where XLA's sums on a CPU do not. A sum that
    overflows although no entry does, at entries beyond 1e35, counts as not finite.
    """
    totals = [_total(leaf) for leaf in jax.tree.leaves(tree)]
    return functools.reduce(jnp.logical_and, [jnp.isfinite(total) for total in totals])


def _total(leaf: Array) -> Array:
    wide = jnp.promote_types(leaf.dtype, jnp.float32)
    if leaf.ndim < 2:
        return jnp.sum(leaf, dtype=wide)
    flat = leaf.reshape(leaf.shape[0], -1)
    return jnp.sum(jnp.matmul(jnp.ones((1, leaf.shape[0]), leaf.dtype), flat, preferred_element_type=wide))


def _average(carry: Carry, params: Any, log_decay: Any) -> Any:
    """Bias-corrected exponential average, of weights proportional to decay^(t - s), kept summing to 1 at each t."""
    t = jnp.asarray(carry.step + 1, dtype=float)
    # The weight of the newest is (1 - decay) / (1 - decay^t), by expm1 because both differences cancel for a decay near
    # 1. Its limit at decay 1, where both vanish, is 1 / t, the plain mean. `where` computes both branches, so the one
    # that is not taken must not divide by 0.
    weight = jnp.where(log_decay < 0.0, jnp.expm1(log_decay) / jnp.minimum(jnp.expm1(t * log_decay), -1e-30), 1.0 / t)
    return jax.tree.map(lambda new, old: old + weight.astype(old.dtype) * (new - old), params, carry.averaged)


@functools.lru_cache(maxsize=32)
def validation(program: ValidationProgram) -> Callable[[Any, Inputs, Batch, int], Array]:
    """The compiled (params, inputs, data, block) -> (n_batches,) weighted sums of the rows' losses."""

    def sums(params: Any, inputs: Inputs, data: Batch, block: int | Array) -> Array:
        key = jax.random.fold_in(jax.random.fold_in(inputs.key, VALIDATION), block)
        rest, validate = join(inputs.arrays, program.static)
        module = eqx.combine(params, rest)

        def one(number: Array) -> Array:
            batch = _shared_out(jax.tree.map(lambda a: a[number], data), program.mesh)
            losses = validate(module, batch, jax.random.fold_in(key, number))
            # By `where` and not by a product with the weight: the loss of padding may be anything, and 0 × inf is NaN.
            return jnp.sum(jnp.where(batch.weight > 0, batch.weight * losses, 0.0))

        return lax.map(one, jnp.arange(len(data.weight)))

    return jax.jit(sums)


def pinned(carry: Carry, mesh: Mesh | None) -> Carry:
    """The carry laid out in the one way that the next segment expects it, so that nothing compiles twice."""
    return carry if mesh is None else jax.tree.map(lax.with_sharding_constraint, carry, layout(carry, mesh))


def layout(carry: Carry, mesh: Mesh) -> Carry:
    """Where each array of the carry lives: everything on each device, but tables in the state (chains) by rows."""
    whole, shared = everywhere(mesh), by_rows(mesh)
    state = jax.tree.map(lambda a: shared if a.ndim >= 2 and a.shape[0] % mesh.size == 0 else whole, carry.state)
    return replace(jax.tree.map(lambda _: whole, carry), state=state)


def _shared_out(batch: Batch, mesh: Mesh | None) -> Batch:
    if mesh is None:
        return batch
    return lax.with_sharding_constraint(batch, by_rows(mesh))
