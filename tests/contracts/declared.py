"""What is checked of declared settings: the public estimators, their signatures, documented names and wrong values."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError, make_constraint

import likely
from likely.contract.settings import Sizes

SIGNATURES = Path(__file__).with_name("signatures.json")


def public_estimators() -> dict[str, type]:
    """Every estimator that `likely` exports and that can be built, by name."""
    values = {name: getattr(likely, name) for name in likely.__all__}
    classes = {name: cls for name, cls in values.items() if isinstance(cls, type) and issubclass(cls, BaseEstimator)}
    return {name: cls for name, cls in classes.items() if not inspect.isabstract(cls)}


def recorded_signatures() -> dict[str, list[str]]:
    """For each estimator "name=default" of what may be given by place, in order, "*", and the rest by name."""
    return json.loads(SIGNATURES.read_text())


def signature_of(cls: type) -> list[str]:
    """The signature of a class in the form of the record; what is given by name, in the order of the alphabet."""
    parameters = inspect.signature(cls).parameters.values()
    written = {
        kind: [f"{p.name}={p.default!r}" for p in parameters if p.kind is kind] for kind in inspect._ParameterKind
    }
    strange = [p for p in parameters if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    assert not strange, f"{cls.__name__} takes {strange}: every setting must have a name"
    kinds = inspect.Parameter
    return [*written[kinds.POSITIONAL_OR_KEYWORD], "*", *sorted(written[kinds.KEYWORD_ONLY])]


def documented_names(cls: type) -> list[str]:
    """The names that the section `Parameters` of a class's docstring explains, as often as it does.

    An entry begins a line; further ones may follow a full stop: "n_slices : directions. noise_scale : a deviation."
    """
    lines = inspect.cleandoc(cls.__doc__ or "").splitlines()
    start = lines.index("Parameters") + 2
    rest = lines[start:]
    length = next((i for i in range(1, len(rest)) if re.fullmatch("-{3,}", rest[i])), len(rest) + 1) - 1
    entries = re.sub(r"\n\s+", " ", "\n".join(rest[:length])).splitlines()
    heads = [head for entry in entries for head in re.findall(r"(?:^|(?<=[.;] ))((?:\w+, )*\w+) : ", entry)]
    return [name for head in heads for name in head.split(", ")]


class Strange:
    """Of a class that no setting allows."""

    def __repr__(self) -> str:
        return "Strange()"


# Near the edge of every range, of every type, and of none.
CANDIDATES: tuple[Any, ...] = (0, -1, 1.5, -1.0, 0.0, 1.0, 2.0, 101, 21, "no such name", None, True, {}, Strange())


def wrong_values(allowed: list[Any]) -> list[Any]:
    """Candidates that none of a setting's constraints lets pass."""
    made = [make_constraint(constraint) for constraint in allowed]
    return [value for value in CANDIDATES if not any(constraint.is_satisfied_by(value) for constraint in made)]


def descriptions(allowed: list[Any]) -> list[str]:
    """What an error says is allowed."""
    return [str(make_constraint(constraint)) for constraint in allowed]


def open_settings(cls: type) -> set[str]:
    """Settings whose type lets through what only `fit` can judge, but for sizes of layers."""
    hints = get_type_hints(cls, include_extras=True)
    return {field.name for field in fields(cls) if _is_open(hints[field.name])}


def _is_open(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return bool({"no_validation", "array-like"} & {part for part in get_args(hint)[1:] if isinstance(part, str)})
    return hint in (tuple, list) or any(_is_open(part) for part in get_args(hint))


def sized_settings(cls: type) -> set[str]:
    """Settings that are sizes of layers."""
    hints = get_type_hints(cls, include_extras=True)
    return {field.name for field in fields(cls) if hints[field.name] == Sizes}


# ------------------------------------------------------------------ what must hold
def check_signature(cls: type, recorded: list[str]) -> None:
    """Names, defaults and what may be given by place are as recorded; the order of what is given by name is free."""
    place = recorded.index("*") + 1
    assert signature_of(cls) == [*recorded[:place], *sorted(recorded[place:])]


def check_docstring(cls: type) -> None:
    """Each setting is explained once, and nothing else is."""
    assert sorted(documented_names(cls)) == sorted(inspect.signature(cls).parameters)


def check_is_declared(cls: type) -> None:
    """Constructor and constraints are made from the fields, by `Declared`."""
    assert not re.search(r"def __init__\(|_parameter_constraints\b", inspect.getsource(cls)), cls
    assert set(cls._parameter_constraints) == {field.name for field in fields(cls)}


def check_refused(cls: type, *arguments: Any) -> None:
    """Wrong values are refused in `fit` by an error that names the setting, what was given, and all that is allowed."""
    for setting, allowed in cls._parameter_constraints.items():
        if allowed == "no_validation":
            continue
        wrong = wrong_values(allowed)
        assert len(wrong) >= 3, setting
        for value in wrong:
            with pytest.raises(InvalidParameterError) as caught:
                cls(**{setting: value}).fit(*arguments)
            said = str(caught.value)
            assert said.startswith(f"The {setting!r} parameter of {cls.__name__} must be ")
            assert said.endswith(f"Got {value!r} instead.")
            assert all(description in said for description in descriptions(allowed))
