"""Small models of pairs, and checks of their evidence that take what is under test, so that a bug can be handed in."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from likely.contract.sequence_predictor import CONDITIONAL_MEASURE
from likely.storage import registry

NAMES = [entry.class_name for entry in registry.learning_from("pairs")]
# A log-probability is a sum in single precision, of some ten terms where it matters, each of them a log-softmax that is
# right to a few units in the last place: p is then right to some tens of these.
ROUNDING = 64 * float(np.finfo(np.float32).eps)


class Case(NamedTuple):
    """A small model of pairs: settings, pairs to learn from and to ask about.

    asked, answers, n_counted : inputs that `fit` did not see, a target for each, and what counts in it.
    another_input, another_answer : in place of the first of these.
    one_input, all_targets : every target that this input may have; if there is no end to them, those that matter.
    """

    settings: dict[str, Any]
    X: list[Any]
    y: list[Any]
    asked: list[Any]
    answers: list[Any]
    n_counted: list[int]
    another_input: Any
    another_answer: Any
    one_input: Any
    all_targets: list[Any]


CASES = {
    # Targets of one letter are told apart by their lengths alone, and those that are longer than 60 have no weight.
    "Seq2Seq": Case(
        {"n_hidden": 4, "n_embedding": 2, "cell": "rnn", "n_epochs": 40, "learning_rate": 0.05},
        ["a", "ab", "b", "ba"] * 4, ["x", "xx", "x", ""] * 4,
        ["aab", "", "bb"], ["xx", "x", ""], [3, 2, 1], "aaa", "xxx",
        "ab", ["x" * length for length in range(60)],
    ),
    "SequenceLabeller": Case(
        {"n_hidden": 3, "n_embedding": 2, "cell": "rnn", "n_epochs": 3},
        ["ab", "ba", "b"] * 4, ["xy", "yx", "z"] * 4,
        ["aab", "c", "bb"], ["xyx", "z", "yy"], [3, 1, 2], "aac", "xyz",
        "ab", ["".join(labels) for labels in itertools.product("xyz", repeat=2)],
    ),
    "SequenceClassifier": Case(
        {"n_hidden": 3, "n_embedding": 2, "cell": "rnn", "n_epochs": 3},
        ["ab", "ba", "b"] * 4, [0, 1, 2] * 4,
        ["aab", "c", "bb"], [0, 1, 2], [1, 1, 1], "aac", 2,
        "ab", [0, 1, 2],
    ),
    "NeuralTuringMachine": Case(
        {"n_slots": 3, "width": 2, "n_hidden": 3, "n_epochs": 2},
        [[[0, 1]], [[1, 1], [1, 0]]] * 4, [[[1], [0]], [[1]]] * 4,
        [[[1, 1]], [[0, 0]]], [[[1], [1], [0]], [[0]]], [3, 1], [[0, 0]], [[1], [1], [1]],
        [[0, 1], [1, 1]], [[[bit] for bit in bits] for bits in itertools.product((0, 1), repeat=3)],
    ),
}  # fmt: skip


def small(name: str, **changes: Any) -> Any:
    """A small model of that name, with a seed."""
    return registry.model_class(name)(**{"random_state": 0} | CASES[name].settings | changes)


def check_sums_to_one(score_samples: Any, case: Case) -> None:
    """Over every target of one input, p adds up to one."""
    log_p = score_samples([case.one_input] * len(case.all_targets), case.all_targets)
    np.testing.assert_allclose(np.exp(log_p).sum(), 1, rtol=ROUNDING, err_msg="targets do not sum to one")


def check_evidence(ask: Any, case: Case) -> None:
    """What `ask`, an `evidence`, says: exact, conditional, of so many tokens, of these pairs and no others."""
    evidence = ask(case.asked, case.answers)
    assert evidence.kind == "exact"
    assert evidence.measure == CONDITIONAL_MEASURE, "it does not say that it is conditional"
    assert evidence.dimensions.tolist() == case.n_counted, "it counts other tokens"
    assert "counting" in evidence.method
    assert ask(case.asked, case.answers).fingerprint == evidence.fingerprint
    other_inputs = ask([case.another_input, *case.asked[1:]], case.answers)
    assert other_inputs.fingerprint != evidence.fingerprint, "it does not know its inputs"
    other_targets = ask(case.asked, [case.another_answer, *case.answers[1:]])
    assert other_targets.fingerprint != evidence.fingerprint, "it does not know its targets"
    assert ask(case.asked[1:], case.answers[1:]).fingerprint == evidence[1:].fingerprint, "it does not know its rows"
