"""The tests check shapes and types of signatures themselves: what is wrong must fail."""

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import pytest
from jaxtyping import Array, Float, TypeCheckError

from likely.columns import Columns
from likely.nets.column_interface import log_density_at
from tests.shapes import CHECKER, modules_with_shapes, shape_in

PLANTED = """
from __future__ import annotations
import equinox as eqx
from jaxtyping import Array, Float

class Line(eqx.Module):
    slope: Float[Array, " d"]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, " n"]:
        return x @ self.slope

def right(x: Float[Array, "n d"]) -> Float[Array, " d"]:
    return x.mean(axis=0)

def wrong(x: Float[Array, "n d"]) -> Float[Array, " d"]:
    return x.mean(axis=1)
"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    (tmp_path / "planted_shapes.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(tmp_path)
    with jaxtyping.install_import_hook("planted_shapes", CHECKER):
        return importlib.import_module("planted_shapes")


def test_a_planted_shape_is_caught(planted):
    x = jnp.ones((2, 3))
    assert planted.right(x).shape == (3,)
    assert planted.Line(jnp.ones(3))(x).shape == (2,)
    for call in (
        lambda: planted.wrong(x),
        lambda: jax.jit(planted.wrong)(x),  # shapes are known while a program is traced
        lambda: planted.right(x[0]),
        lambda: planted.right(jnp.ones((2, 3), int)),
        lambda: planted.Line(jnp.ones((3, 1))),
    ):
        with pytest.raises(TypeCheckError):
            call()


def test_the_librarys_functions_are_checked():
    columns, x = Columns(("binary",) * 3, (1,) * 3), jnp.zeros((2, 3))
    assert log_density_at(columns, x, None, x, jnp.zeros(0)).shape == (2,)
    for wrong in (jnp.zeros((4, 3)), jnp.zeros(()), x.astype(int)):
        with pytest.raises(TypeCheckError, match="log_density_at"):
            log_density_at(columns, x, None, wrong, jnp.zeros(0))


@pytest.mark.parametrize(
    ("annotation", "checks"),
    [
        (int, False),
        (dict[str, Float[Array, " n"]], False),
        (Float[Array, " n"] | str, False),  # something else may come, so nothing can be said
        (Float[Array, " n"] | None, True),
        (tuple[Float[Array, "_n _d"], ...], True),
        (tuple[int, list[Float[Array, " n"]]], True),
    ],
)
def test_what_has_a_shape_is_checked(annotation, checks):
    assert (shape_in(annotation) is not Any) == checks


def test_every_room_of_pure_functions_is_listed():
    rooms = {name.split(".")[1] for name in modules_with_shapes()}
    assert {"columns", "gradients", "models", "montecarlo", "nets", "objectives", "training"} <= rooms
