"""Settings as fields: which values each type allows, what signature they make, and which declarations are refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError, make_constraint

from likely.contract.settings import (
    Count,
    Decay,
    Declared,
    Fraction,
    NonNegative,
    Positive,
    RandomState,
    Several,
    Share,
    Sizes,
    Unchecked,
    Whole,
    are_sizes,
    constraints,
    one_of,
    seed_of,
    settings_of,
)
from likely.schema import Schema

SCHEMA = Schema.binary(2)
TYPES = {
    "Count": (Count, [1, 2, np.int64(3)], [0, -1, 1.0, "1", None]),
    "Whole": (Whole, [0, 1, np.int32(3)], [-1, 0.0, "0", None]),
    "Several": (Several, [2, 3], [1, 0, 2.0, None]),
    "Positive": (Positive, [1e-9, 1, 2.5, np.float32(1)], [0, 0.0, -1.0, float("nan"), "1", None]),
    "NonNegative": (NonNegative, [0, 0.0, 1.5], [-1e-9, -1, "0", None]),
    "Share": (Share, [0.5, 1e-9], [0, 0.0, 1, 1.0, -0.5, None]),
    "Fraction": (Fraction, [0, 0.0, 0.5], [1, 1.0, -0.1, None]),
    "Decay": (Decay, [1, 1.0, 0.5], [0, 0.0, 1.1, None]),
    "Sizes": (Sizes, [(), (3, 2), [3]], [3, "32", None, {3}, np.array([3])]),
    "RandomState": (RandomState, [None, 0, 7, np.random.RandomState(0)], [-1, 1.5, "seed"]),
    "bool": (bool, [True, False, np.True_], [1, 0, "yes", None]),
    "Literal": (Literal["hebb", "storkey"], ["hebb", "storkey"], ["heb", 1, None]),
    "Literal of numbers": (Literal[1, 2], [1, 2], [3, "1", None]),
    "Literal of both": (bool | Literal["lowest"], [True, "lowest"], ["highest", 2, None]),
    "names": (Annotated[str, one_of({"a": 1, "b": 2})], ["a", "b"], ["c", 1, None]),
    "class": (Schema, [SCHEMA], [Schema, "schema", None]),
    "class or None": (Schema | None, [SCHEMA, None], [0, "schema"]),
    "number or None": (Positive | None, [0.1, None], [0, "0.1"]),
    "number or pair": (Count | tuple | list, [1, (1, 2), [1, 2]], [0, 1.5, "12", None]),
    "function": (Callable, [len, Schema], [1, "len", None]),
    "function of something": (Callable[[int], float] | None, [len, None], [1, "len"]),
    "unchecked": (Unchecked, [None, object(), -1], []),
    "unchecked or None": (Unchecked | None, [None, object(), -1], []),
    "None": (None, [None], [0, ""]),
}


def declared(hint: Any, default: Any = None) -> type[Declared]:
    """A class with one setting of a type."""
    return type("Small", (Declared,), {"__annotations__": {"it": hint}, "it": default, "__module__": __name__})


@pytest.mark.parametrize("name", TYPES)
def test_a_type_allows_what_it_says(name):
    hint, right, wrong = TYPES[name]
    cls = declared(hint)
    assert constraints(cls).keys() == cls._parameter_constraints.keys() == {"it"}
    for value in right:
        cls(it=value)._validate_params()
    for value in wrong:
        with pytest.raises(InvalidParameterError, match="The 'it' parameter of Small must be"):
            cls(it=value)._validate_params()


def test_every_kind_of_constraint_is_one_that_scikit_learn_knows():
    for hint, _, _ in TYPES.values():
        allowed = declared(hint)._parameter_constraints["it"]
        assert allowed == "no_validation" or [make_constraint(one) for one in allowed]


STRANGE = [Any, list[int], tuple[int, int], dict[str, int], 3, "Count | dict[str, int]", Count | Any]


@pytest.mark.parametrize("hint", STRANGE)
def test_a_strange_type_is_refused_where_it_is_declared(hint):
    with pytest.raises(TypeError, match=r"^Small\.it is declared as .*, which is no type of a setting: use one of"):
        declared(hint)


def test_a_default_that_all_would_share_is_refused():
    with pytest.raises(ValueError, match="mutable default"):
        declared(Sizes, [1, 2])


class Base(Declared):
    _: KW_ONLY
    random_state: RandomState = None
    n_epochs: Count = 100


class Middle(Base):
    _: KW_ONLY
    rate: Positive = 0.1
    hidden: Sizes = (3,)


class Leaf(Middle):
    first: Count = 1
    second: Count = 2
    _: KW_ONLY
    own: bool = False
    n_epochs: Count = 5  # another default than the base's


def test_the_signature_has_what_is_own_first_then_what_is_shared():
    parameters = inspect.signature(Leaf).parameters.values()
    written = inspect.Signature([parameter.replace(annotation=parameter.empty) for parameter in parameters])
    expected = "(first=1, second=2, *, own=False, n_epochs=5, rate=0.1, hidden=(3,), random_state=None)"
    assert str(written) == expected
    assert Base().n_epochs == 100


def test_what_is_given_is_kept_as_it_is():
    hidden = [4, 5]
    model = Leaf(3, 4, hidden=hidden)
    assert (model.first, model.second) == (3, 4)
    assert model.hidden is hidden
    with pytest.raises(TypeError, match="positional argument"):
        Leaf(1, 2, True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'owns'"):
        Leaf(owns=True)


def test_an_estimator_is_scikit_learns():
    """Equal only to itself, shown by what differs from the defaults, cloned by its settings."""
    model = Leaf(3, rate=0.5)
    assert model != Leaf(3, rate=0.5)
    assert hash(model) == hash(model)
    assert repr(model) == "Leaf(first=3, rate=0.5)"
    assert clone(model).get_params() == model.get_params() == settings_of(Leaf) | {"first": 3, "rate": 0.5}


def test_settings_have_their_defaults():
    assert settings_of(Base) == {"random_state": None, "n_epochs": 100}
    assert settings_of(Leaf)["n_epochs"] == 5
    assert settings_of(Leaf).keys() == inspect.signature(Leaf).parameters.keys()


def test_a_class_variable_or_a_plain_attribute_is_no_setting():
    class Quiet(Base):
        _resumable = True

    assert settings_of(Quiet) == settings_of(Base)


@pytest.mark.parametrize(
    ("values", "right"),
    [
        ((), True),
        ((1, 2), True),
        ([np.int64(3)], True),
        ((0,), False),
        ((1.0,), False),
        ((True,), False),
        ("ab", False),
    ],
)
def test_sizes_are_whole_numbers_of_at_least_one(values, right):
    assert are_sizes(values) is right


def test_a_seed_is_itself_or_drawn_from_what_is_given(global_random_seed):
    assert seed_of(global_random_seed) == seed_of(np.int64(global_random_seed)) == global_random_seed
    drawn = [seed_of(np.random.RandomState(global_random_seed)) for _ in range(2)]
    assert drawn[0] == drawn[1] == np.random.RandomState(global_random_seed).randint(2**31 - 1)
    state = np.random.RandomState(global_random_seed)
    assert seed_of(state) != seed_of(state)
    assert 0 <= seed_of(None) < 2**31 - 1
    with pytest.raises(ValueError, match="seed"):
        seed_of("seven")
