"""What is checked of declared settings: the public estimators, their signatures, documented names and wrong values."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import make_constraint

import likely

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
