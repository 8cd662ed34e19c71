"""Planted bugs in memories, trees, readers, attention and encoder-decoders, caught by the checks the library passes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.models.language.pairs.seq2seq_network import seq2seq_losses
from likely.nets.memory import Heads, address, read, write
from likely.nets.tree import balanced
from tests.models.language.pairs.sequence_checks import (
    check_attention,
    check_normalised,
    check_reader,
    small_network,
)
from tests.nets.memory_checks import check_address, check_read_and_write, some_heads
from tests.nets.tree_checks import check_tree

pytestmark = pytest.mark.usefixtures("x64")


def test_a_shift_to_the_other_side_is_caught(monkeypatch):
    memory, before, raw = some_heads(0)
    monkeypatch.setattr("likely.nets.memory.SHIFTS", (1, 0, -1))
    with pytest.raises(AssertionError, match="not the address"):
        check_address(jax.jit(lambda *given: address(*given)), Heads.of(jnp.asarray(raw)), memory, before)


def test_addresses_without_sharpening_are_caught():
    memory, before, raw = some_heads(0)
    heads = Heads.of(jnp.asarray(raw))
    dull = lambda m, b, own: address(m, b, dataclasses.replace(own, sharpness=jnp.ones_like(own.sharpness)))  # noqa: E731
    with pytest.raises(AssertionError, match="not the address"):
        check_address(jax.jit(dull), heads, memory, before)


def test_a_write_that_does_not_erase_is_caught():
    memory, before, raw = some_heads(0)
    adds = lambda m, b, w: m + b[:, :, None] * w[:, None, :]  # noqa: E731
    with pytest.raises(AssertionError, match="not what is written"):
        check_read_and_write(jax.jit(read), adds, memory, before[:, 0], raw[:, 0, : memory.shape[2]])
    with pytest.raises(AssertionError, match="not what is read"):
        check_read_and_write(
            lambda m, a: np.einsum("ns,nsm->nm", a**2, m), write, memory, before[:, 0], raw[:, 0, : memory.shape[2]]
        )


def test_a_tree_that_composes_with_padding_is_caught():
    def careless(compose, leaves, there):
        return balanced(compose, leaves, jnp.ones_like(there))

    with pytest.raises(AssertionError, match="another depth"):
        check_tree(jax.jit(careless, static_argnums=0))


def test_a_chain_in_place_of_a_tree_is_caught():
    def chain(compose, leaves, there):
        root = leaves[:, 0]
        for place in range(1, leaves.shape[1]):
            root = jnp.where(there[:, place, None], compose(root, leaves[:, place]), root)
        return root

    with pytest.raises(AssertionError, match="another depth"):
        check_tree(jax.jit(chain, static_argnums=0))


def test_a_way_back_that_starts_in_the_padding_is_caught():

    def careless(reader, tokens):  # padding is read as unknown tokens, and the state never forgotten
        return reader(jnp.maximum(tokens, 0))

    with pytest.raises(AssertionError, match="padding changes outputs"):
        check_reader(jax.jit(careless), small_network().reader)


def test_attention_to_padding_is_caught():

    def everywhere(own, query, outputs, there):
        return own.weights(query, own.places(outputs), jnp.ones_like(there))

    with pytest.raises(AssertionError, match="not additive attention"):
        check_attention(jax.jit(everywhere), small_network().attention)


def test_a_decoder_that_sees_the_token_it_predicts_is_caught():
    def peeping(network, sources, targets):
        return seq2seq_losses(network, sources, jnp.roll(targets, -1, axis=1))[0], (targets >= 0).sum(axis=1)

    with pytest.raises(AssertionError, match="do not sum to one"):
        check_normalised(jax.jit(peeping), small_network())
