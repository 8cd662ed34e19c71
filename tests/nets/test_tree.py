"""Balanced trees against recursion."""

import jax
import pytest

from likely.nets.tree import balanced
from tests.nets.tree_checks import check_tree


@pytest.mark.usefixtures("x64")
def test_depth_and_roots():
    check_tree(jax.jit(balanced, static_argnums=0))
