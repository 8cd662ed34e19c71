"""Settings: a hyper-parameter is one annotated field of its class, and all else follows from the field.

The base makes `__init__` from the fields, as `dataclasses` does, and what scikit-learn checks from their types:

    class Mixture(Model):
        n_components: Count = 10
        _: KW_ONLY
        covariance: Literal["full", "diagonal"] = "diagonal"
        min_variance: Positive = 1e-4

A field's type says which values it allows: `Count`, `Positive` and the others below, `Literal` for names, a class for
its instances, `bool`, and `X | None` where None means something.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Literal, Union, dataclass_transform, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions

from likely.contract.scikit_learn import BaseEstimator

Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Whole = Annotated[int, Interval(Integral, 0, None, closed="left")]  # a count that may be 0
Several = Annotated[int, Interval(Integral, 2, None, closed="left")]  # a count whose spread is asked for
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
NonNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
Share = Annotated[float, Interval(Real, 0, 1, closed="neither")]  # strictly between none and all
Fraction = Annotated[float, Interval(Real, 0, 1, closed="left")]  # a share that may be 0
Decay = Annotated[float, Interval(Real, 0, 1, closed="right")]  # a share that may be 1
Sizes = Annotated[Sequence[int], tuple, list]  # of layers; what it holds is checked in `fit`, by `are_sizes`
RandomState = Annotated[Any, "random_state"]  # a seed, a NumPy generator of the old kind, or None
Unchecked = Annotated[Any, "no_validation"]  # checked by the code that reads it


def one_of(names: Iterable[str]) -> StrOptions:
    """The names of a table, such as `Annotated[str, one_of(CELLS)]`; `Literal` where they are written out."""
    return StrOptions(set(names))


@dataclass_transform(eq_default=False)
class Declared(BaseEstimator):
    """Base of estimators whose hyper-parameters are declared as fields."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclasses.dataclass(eq=False, repr=False)(cls)
        cls._parameter_constraints = constraints(cls)
        if "__init__" in vars(cls):
            cls.__init__.__signature__ = _own_first(cls)  # type: ignore[attr-defined]


def constraints(cls: type) -> dict[str, Any]:
    """What scikit-learn's validation is told of each field, from the types.

    Examples
    --------
    >>> class Small(Declared):
    ...     size: Count = 3
    ...     rate: Positive | None = None
    ...     rule: Literal["hebb"] = "hebb"
    >>> {name: [str(c) for c in allowed] for name, allowed in Small._parameter_constraints.items()}
    {'size': ['an int in the range [1, inf)'],
     'rate': ['a float in the range (0.0, inf)', 'None'],
     'rule': ["a str among {'hebb'}"]}
    """
    hints = get_type_hints(cls, include_extras=True)
    names = [field.name for field in dataclasses.fields(cls)]
    return {name: _allowed(hints[name], f"{cls.__name__}.{name}") for name in names}


def _allowed(hint: Any, place: str) -> Any:
    """The constraints of one type: a list of alternatives, or "no_validation". `place` is for the error."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return "no_validation" if "no_validation" in parts[1:] else list(parts[1:])
    if origin in (Union, types.UnionType):
        alternatives = [_allowed(part, place) for part in parts]
        return "no_validation" if "no_validation" in alternatives else [one for some in alternatives for one in some]
    if origin is Literal:
        return [StrOptions(set(parts)) if all(isinstance(p, str) for p in parts) else Options(object, set(parts))]
    if hint is type(None):
        return [None]
    if hint is bool:
        return ["boolean"]
    if hint is Callable or origin is Callable:
        return [callable]
    if isinstance(hint, type) and hint is not Any:
        return [hint]
    raise TypeError(
        f"{place} is declared as {hint!r}, which is no type of a setting: use one of likely.contract.settings, bool, "
        "a Literal, a class, or several of these with | between."
    )


def _own_first(cls: type) -> inspect.Signature:
    """The signature of `__init__` as people read it: what the class declares itself, then what it shares.

    A dataclass has the fields of its bases first, which would put `random_state` before `objective`. Only the order of
    what is given by name changes.
    """
    declared = [name for base in cls.__mro__ for name in vars(base).get("__annotations__", ())]
    signature = inspect.signature(vars(cls)["__init__"])
    own, *parameters = signature.parameters.values()
    positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY]
    named = sorted((p for p in parameters if p.kind is p.KEYWORD_ONLY), key=lambda p: declared.index(p.name))
    return signature.replace(parameters=[own, *positional, *named])


def settings_of(cls: type) -> dict[str, Any]:
    """The names of a class's settings with their defaults, in order."""
    return {field.name: field.default for field in dataclasses.fields(cls)}


def are_sizes(values: Iterable[Any]) -> bool:
    """Whether all are whole numbers of at least 1; True is a number for Python, and no size."""
    return all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 for n in values)


def seed_of(random_state: Any) -> int:
    """The seed that a `random_state` gives: itself, or one drawn from it."""
    from sklearn.utils import check_random_state

    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
