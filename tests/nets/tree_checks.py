"""A balanced tree, written once more by recursion."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np


def plain_root(compose, leaves):
    """Neighbours in pairs, an odd one goes up."""
    if len(leaves) == 1:
        return leaves[0]
    pairs = [compose(*leaves[i : i + 2]) if i + 1 < len(leaves) else leaves[i] for i in range(0, len(leaves), 2)]
    return plain_root(compose, pairs)


def check_tree(balanced, lengths=range(1, 14), width=14):
    """Depth is ceil(log2 length) for every length, and the root is the recursion's, whatever the padding."""
    random = np.random.RandomState(0)
    lengths = np.array(lengths)
    leaves, there = random.normal(size=(len(lengths), width, 1)), np.arange(width)[None, :] < lengths[:, None]
    depth = np.asarray(balanced(lambda a, b: jnp.maximum(a, b) + 1, 0 * leaves, there))[:, 0]
    np.testing.assert_array_equal(depth, np.ceil(np.log2(lengths)), err_msg="a tree of another depth")
    for row, root in enumerate(np.asarray(balanced(lambda a, b: 0.3 * a - b, leaves, there))):
        wanted = plain_root(lambda a, b: 0.3 * a - b, list(leaves[row, : lengths[row]]))
        np.testing.assert_allclose(root, wanted, err_msg="not the recursion's root")
