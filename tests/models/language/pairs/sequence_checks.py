"""Encoder-decoders and labellers written once more without padding and batches, and sums over every target."""

from __future__ import annotations

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from likely.models.language.pairs.seq2seq_network import END, Seq2SeqNetwork
from likely.nets.recurrent import output_of


@functools.cache
def small_network(attention=True):
    """Two source tokens, two target tokens, both ways; biases are not 0, with which padding would change nothing."""
    if not attention:
        return eqx.tree_at(lambda own: own.attention, small_network(), None)
    build = functools.partial(
        Seq2SeqNetwork.build, n_embedding=2, n_hidden=3, kind="lstm", bidirectional=True, attention=True
    )
    network = jax.jit(lambda key: build(key, 2, 2))(jax.random.key(1))
    biases = np.random.RandomState(0).normal(size=(3, 12))
    where = lambda own: (own.reader.forward.bias, own.reader.backward.bias, own.decoder.bias)  # noqa: E731
    return eqx.tree_at(where, network, tuple(jnp.asarray(bias) for bias in biases))


def plain_read(reader, tokens):
    """Outputs (t, k) of one sequence: a step after the other, both ways."""
    ways = []
    for cell, order in ((reader.forward, tokens), (reader.backward, tokens[::-1])):
        state, outputs = cell.first(1), []
        for token in order:
            x = jnp.zeros((1, reader.embedding.shape[1])) if token == 0 else reader.embedding[token - 1][None]
            state = cell.step(state, cell.gates(x))
            outputs.append(np.asarray(output_of(state))[0])
        ways.append(outputs if cell is reader.forward else outputs[::-1])
    return np.concatenate([np.array(way) for way in ways], axis=1)


def plain_attention(attention, query, outputs):
    """Softmax of vᵀ tanh(W s + U h_i), place by place."""
    scores = [
        np.asarray(attention.direction)
        @ np.tanh(np.asarray(attention.query) @ query + np.asarray(attention.place) @ output)
        for output in outputs
    ]
    weights = np.exp(scores - np.max(scores))
    return weights / weights.sum()


def check_reader(read, reader, rows=((1, 2, 2), (2,), (0, 1, 2, 1))):
    """Padded rows are read as each of them alone."""
    padded = np.full((len(rows), 5), -1)
    for row, tokens in zip(padded, rows, strict=True):
        row[: len(tokens)] = tokens
    outputs, summary = (np.asarray(a) for a in read(reader, jnp.asarray(padded)))
    h = reader.forward.n_hidden
    for row, tokens in enumerate(rows):
        wanted = plain_read(reader, tokens)
        np.testing.assert_allclose(outputs[row, : len(tokens)], wanted, atol=1e-10, err_msg="padding changes outputs")
        last = np.concatenate([wanted[-1, :h], wanted[0, h:]])
        np.testing.assert_allclose(summary[row], last, atol=1e-10, err_msg="not the last outputs")


def check_attention(weights, attention, places=5):
    """Weights are the plain ones where there is something, and 0 elsewhere."""
    random = np.random.RandomState(0)
    outputs = random.normal(size=(2, places, attention.place.shape[1]))
    query = random.normal(size=(2, attention.query.shape[1]))
    there = np.arange(places)[None, :] < np.array([[places], [2]])
    found = np.asarray(weights(attention, jnp.asarray(query), jnp.asarray(outputs), jnp.asarray(there)))
    for row, length in enumerate((places, 2)):
        wanted = plain_attention(attention, query[row], outputs[row, :length])
        np.testing.assert_allclose(found[row, :length], wanted, rtol=1e-9, err_msg="not additive attention")
        assert not found[row, length:].any(), "looks at padding"


def check_normalised(losses, network, longest=3):
    """Over all targets of up to `longest` tokens, and the beginnings of longer ones, p sums to one."""
    whole = [list(t) + [END] for n in range(longest) for t in itertools.product((1, 2), repeat=n)]
    cut = [list(t) for t in itertools.product((1, 2), repeat=longest)]
    targets = np.full((len(whole + cut), longest), -1.0)
    for row, target in zip(targets, whole + cut, strict=True):
        row[: len(target)] = target
    sources = np.tile(np.array([[2.0, 1.0, -1.0]]), (len(targets), 1))
    totals, counts = losses(network, jnp.asarray(sources), jnp.asarray(targets))
    np.testing.assert_array_equal(np.asarray(counts), (targets >= 0).sum(axis=1))
    np.testing.assert_allclose(np.exp(-np.asarray(totals)).sum(), 1, rtol=1e-9, err_msg="targets do not sum to one")
