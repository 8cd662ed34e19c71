"""Shapes in signatures, checked in every call that a test makes: jaxtyping's import hook, with beartype on the shapes.

Only annotations that hold a shape are checked: `Float[Array, "n d"]` means two axes of floating numbers, the second as
long as every other d of that call. NumPy's arrays and Python's numbers pass for JAX's,
since the functions take them all; other types are mypy's.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import jaxtyping
import numpy as np
from beartype import beartype

SOURCE = Path(__file__).resolve().parent.parent / "src"
CHECKER = "tests.shapes.checked"


def modules_with_shapes() -> list[str]:
    """Every module of the library that writes a shape into a signature.

    What Numba compiles must not be wrapped. Such modules hold NumPy arrays and no shapes, so they are not listed.
    """
    files = sorted((SOURCE / "likely").rglob("*.py"))
    shaped = [path for path in files if "from jaxtyping import" in path.read_text()]
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in shaped]


def install() -> None:
    """From now on whatever is imported of the library is checked."""
    jaxtyping.install_import_hook(modules_with_shapes(), CHECKER)


def checked(function: Callable) -> Callable:
    """The function with its shapes checked, or as it is where it has none."""
    shapes = {name: shape_in(annotation) for name, annotation in function.__annotations__.items()}
    if all(shape is Any for shape in shapes.values()):
        return function
    function.__annotations__ = shapes
    return beartype(function)


def shape_in(annotation: Any) -> Any:
    """What of an annotation is about shapes; Any where nothing is."""
    import jax  # only once a module with shapes is imported: tests of the light parts need no JAX

    if isinstance(annotation, type) and issubclass(annotation, jaxtyping.AbstractArray):
        shaped = annotation.dtype[jax.Array | np.ndarray, annotation.dim_str]
        return shaped if annotation.dim_str.strip() else shaped | bool | int | float | np.generic
    origin, parts = get_origin(annotation), get_args(annotation)
    inner = tuple(part if part in (None, type(None), Ellipsis) else shape_in(part) for part in parts)
    if origin in (Union, types.UnionType):
        return Any if Any in inner else functools.reduce(operator.or_, inner)
    if origin in (tuple, list) and any(part not in (Any, Ellipsis) for part in inner):
        return origin[inner]
    return Any
