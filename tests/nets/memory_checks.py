"""A memory's addressing, reading and writing written once more, plainly, slot by slot."""

from __future__ import annotations

import numpy as np

# What the library adds where a gradient would be infinite at 0: under roots, and to weights before a power.
ABOVE_ZERO = 1e-8


def plain_address(memory, before, key, strength, gate, shift, sharpness):
    """One row, one head: content, gate, shift, sharpening, as Graves, Wayne and Danihelka's equations 5 to 9."""
    n_slots = len(memory)
    cosine = [key @ slot / np.sqrt((key @ key + ABOVE_ZERO) * (slot @ slot + ABOVE_ZERO)) for slot in memory]
    content = np.exp(strength * np.array(cosine))
    content /= content.sum()
    kept = gate * content + (1 - gate) * before
    moved = np.zeros(n_slots)
    for i in range(n_slots):
        for share, move in zip(shift, (-1, 0, 1), strict=True):
            moved[(i + move) % n_slots] += share * kept[i]
    powers = (moved + ABOVE_ZERO) ** sharpness
    return powers / powers.sum()


def some_heads(seed, n=3, h=2, s=5, m=4):
    """Memory (n, s, m), addresses before (n, h, s), and numbers that make heads."""
    random = np.random.RandomState(seed)
    before = random.dirichlet(np.ones(s), (n, h))
    return random.normal(size=(n, s, m)), before, random.normal(size=(n, h, m + 6))


def check_address(address, heads, memory, before):
    """The library's addresses are the plain ones, and distributions."""
    found = np.asarray(address(memory, before, heads))
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=2), 1, rtol=1e-12, err_msg="an address is no distribution")
    parts = [np.asarray(a) for a in (heads.key, heads.strength, heads.gate, heads.shift, heads.sharpness)]
    for row in range(len(memory)):
        for head in range(before.shape[1]):
            wanted = plain_address(memory[row], before[row, head], *(part[row, head] for part in parts))
            np.testing.assert_allclose(found[row, head], wanted, rtol=1e-12, err_msg="not the address of the equations")


def check_read_and_write(read, write, memory, weights, content):
    """r = Σ α_i M_i, and M_i ← (1 − β_i) M_i + β_i w."""
    for row in range(len(memory)):
        wanted = sum(a * slot for a, slot in zip(weights[row], memory[row], strict=True))
        np.testing.assert_allclose(np.asarray(read(memory, weights))[row], wanted, err_msg="not what is read")
        written = [(1 - b) * slot + b * content[row] for b, slot in zip(weights[row], memory[row], strict=True)]
        np.testing.assert_allclose(
            np.asarray(write(memory, weights, content))[row], written, err_msg="not what is written"
        )
