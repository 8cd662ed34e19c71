"""Trees of scikit-learn's histogram boosting as arrays of our own, which files hold and `boosting_loops` reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

N_WORDS = 8  # of 32 bits, for a set of categories


class Nodes(NamedTuple):
    """One tree."""

    feature: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    bits: np.ndarray
    hole_left: np.ndarray
    value: np.ndarray


def nodes_of(tree: Any, model: Any, inputs: np.ndarray, named: np.ndarray) -> Nodes:
    """A tree of scikit-learn with inputs numbered as cells are, and sets of the cells' own categories."""
    nodes, n = tree.nodes, len(tree.nodes)
    order = np.concatenate([inputs[named], inputs[~named]])  # It puts categorical inputs first.
    encoder = model._preprocessor.named_transformers_["encoder"] if named.any() else None
    new, children = _side_by_side(nodes)
    feature, child, bits = np.full(n, -1, np.int32), np.zeros(n, np.int32), np.zeros((n, N_WORDS), np.uint32)
    threshold, value, hole_left = np.zeros(n, np.float32), np.zeros(n, np.float32), np.zeros(n, np.int32)
    for old, at in enumerate(new):
        node = nodes[old]
        value[at], hole_left[at] = node["value"], node["missing_go_to_left"]
        if node["is_leaf"]:
            continue
        feature[at], child[at] = order[node["feature_idx"]], children[old]
        threshold[at] = _below(node["num_threshold"])
        if node["is_categorical"]:
            assert encoder is not None
            bits[at] = _set_of(tree.raw_left_cat_bitsets[node["bitset_idx"]], encoder.categories_[node["feature_idx"]],
                               bool(node["missing_go_to_left"]))  # fmt: skip
            threshold[at] = np.nan
    return Nodes(feature, threshold, child, bits, hole_left, value)


def _side_by_side(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New numbers of nodes, by which both children of a node stand together, and the first child of each."""
    new, children, queue, n = np.zeros(len(nodes), np.int32), np.zeros(len(nodes), np.int32), [0], 1
    for old in queue:
        if not nodes[old]["is_leaf"]:
            left, right = int(nodes[old]["left"]), int(nodes[old]["right"])
            new[left], new[right], children[old] = n, n + 1, n
            queue += [left, right]
            n += 2
    return new, children


def _below(threshold: float) -> np.float32:
    """The largest number of float32 up to a threshold, which the same cells of float32 stay below."""
    near = np.float32(threshold)
    return np.nextafter(near, np.float32(-np.inf)) if near > threshold else near


def _set_of(words: np.ndarray, categories: np.ndarray, hole_left: bool) -> np.ndarray:
    """The set of the categories that go left; what scikit-learn never saw goes where holes go."""
    inside = np.full(N_WORDS * 32, hole_left)
    for code, category in enumerate(categories):
        if not np.isnan(category):
            inside[int(category)] = bool(words[code // 32] >> np.uint32(code % 32) & np.uint32(1))
    return np.packbits(inside, bitorder="little").view(np.uint32)
