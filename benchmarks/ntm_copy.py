"""A neural Turing machine learns to copy 8-bit vectors: steps until it has, and bit errors beyond what it was taught.

It is taught sequences of 1 to 20 vectors, and judged by new ones of 10, 20, 40 and 60. "Learnt" is the first epoch
whose mean loss is below 0.01 nats a bit; a coin has 0.69.
"""

from __future__ import annotations

import numpy as np

import likely
from benchmarks import recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch
from likely.datasets.named.sequence_tasks import copy_task

MOST_STEPS, WORST_ERROR = 30_000, 0.05
LEARNT = 0.01  # nats a bit


def run(*, small: bool, seed: int) -> Outcome:
    n_train, lengths, n_test = (32, (2,), 4) if small else (16_000, (10, 20, 40, 60), 200)
    recipe = recipes.NTM_COPY | (
        {"n_slots": 8, "width": 4, "n_hidden": 6, "controller": "feedforward"} if small else {}
    )
    taught = copy_task(n_train, lengths=(1, 2 if small else 20), n_bits=3 if small else 8, seed=seed)
    model = likely.NeuralTuringMachine(**recipe, random_state=seed)
    seconds, _ = stopwatch(lambda: model.fit(*taught))
    steps = first_learnt(model.history_["loss"], n_train // recipe["batch_size"])
    errors = {length: bit_error(model, length, n_test, seed + 1) for length in lengths}
    beyond = errors.get(40, errors[lengths[-1]])
    in_time = steps is not None and steps < MOST_STEPS
    lines = [
        Line(
            what="NTM copy, lengths 1-20: steps until learnt",
            ours="not learnt" if steps is None else f"{steps:,}",
            quality=f"{model.history_['loss'][-1]:.2g} nats a bit after all steps, {in_words(seconds)}",
            bar=f"< {MOST_STEPS:,}",
            reached=in_time,
        ),
        Line(
            what="NTM copy, bit error at length 40",
            ours=f"{beyond:.2%}",
            quality=", ".join(f"length {length}: {error:.2%}" for length, error in errors.items()),
            bar=f"≤ {WORST_ERROR:.0%}",
            reached=bool(beyond <= WORST_ERROR),
        ),
    ]
    figures = {"steps": steps, "bit_errors": errors, "seconds": seconds, "loss": model.history_["loss"]}
    return Outcome(lines, figures | {"recipe": recipe})


def first_learnt(losses: list[float], steps_per_epoch: int) -> int | None:
    """Steps up to the end of the first epoch that is below the mark."""
    below = np.flatnonzero(np.array(losses) < LEARNT)
    return None if len(below) == 0 else int(below[0] + 1) * steps_per_epoch


def bit_error(model: likely.NeuralTuringMachine, length: int, n: int, seed: int) -> float:
    """Share of wrong bits on new sequences of one length."""
    return 1 - model.score(*copy_task(n, lengths=(length, length), n_bits=model.n_inputs_, seed=seed))
