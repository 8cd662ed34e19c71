"""Every Markov kernel of the library leaves its distribution unchanged: Geweke's test, in the form of many short runs.

Geweke (2004) compares two ways to draw parameters and data jointly: at once, and by the kernel and the data in turns.
Here the joint law of all units is known by enumeration, so the first of them is exact draws. Runs start there, the
kernel is applied to each a few times, and the states must have the same law still. Where cells are clamped, every run
has its own, drawn with the rest: they are the data, and the test is Geweke's own. Kernels on real vectors have the
alternating form, in tests/montecarlo/chain_checks.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from likely.columns import Columns
from likely.models.energy.harmonium import annealing as harmonium_annealing
from likely.models.energy.harmonium import machine as harmonium
from likely.models.energy.harmonium.machine import RBMParams
from likely.models.energy.harmonium.tempering import inverse_temperatures, tempered_step
from likely.models.energy.layered import machine as layered
from likely.models.energy.layered.machine import LayeredParams
from likely.models.energy.network import moves
from likely.models.energy.network.annealing import Path as NetworkPath
from likely.models.energy.network.function import Kind, first_params, first_perceptron
from likely.models.energy.pairwise import annealing as pairwise_annealing
from likely.models.energy.pairwise import machine as pairwise
from likely.models.energy.pairwise.machine import PairwiseParams
from likely.models.latent.diagnosis import annealed_latents
from likely.montecarlo import (
    block_gibbs,
    dense_pairwise,
    hmc_kernel,
    langevin_kernel,
    nuts_kernel,
    single_site_gibbs,
    sparse_gibbs,
    sparse_pairwise,
    start_tempering,
    tempering,
)
from tests.audit import findings
from tests.audit.cases import Case, fitted
from tests.audit.findings import MOST_SURPRISE, Finding, Size
from tests.audit.oracles import Table, bits, perceptron, softplus

N_STEPS = 2  # of a kernel, so that what it hands on to itself is looked at as well
N_MOVES = 8  # of a kernel on a line, whose steps are of random length, the same for all runs
N_BINS = 20  # of a real number, equally probable
HALF = 0.5  # a point on every path between two densities


class Trial(NamedTuple):
    """A kernel and the law that it leaves unchanged.

    states : (m, c) all states. law : (m,) their probabilities.
    step : (key, states (n, c)) -> states (n, c).
    """

    states: np.ndarray
    law: np.ndarray
    step: Callable[[Any, Any], Any]


def normalised(logs: np.ndarray) -> np.ndarray:
    return np.exp(logs - logsumexp(logs))


def check_kernel(name: str, trial: Trial, seed: int, size: Size) -> Finding:
    """From exact draws, a few steps, and a chi-square of where the runs are."""
    rng = np.random.default_rng(seed)
    states, law = trial.states, trial.law
    now = jnp.asarray(states[rng.choice(len(law), size.n_chains, p=law)], jnp.float32)
    for number in range(N_STEPS):
        now = trial.step(jax.random.key(1000 * seed + number), now)
    places = {tuple(state): i for i, state in enumerate(states.tolist())}
    ended, counts = np.unique(np.asarray(now, np.float64), axis=0, return_counts=True)
    totals = np.zeros(len(states) + 1)  # the last for states that are none: counts beyond the table's last
    for state, count in zip(ended.tolist(), counts, strict=True):
        totals[places.get(tuple(state), len(states))] += count
    figure = findings.of_counts(totals, np.append(law, 0.0))
    return Finding(name, "leaves its law unchanged", figure, MOST_SURPRISE, "surprise")


# ------------------------------------------------------------------ pairwise machines of the Monte Carlo room
N_UNITS = 4


def _couplings(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    couplings = rng.normal(size=(N_UNITS, N_UNITS))
    couplings = (couplings + couplings.T) / 2
    np.fill_diagonal(couplings, 0)
    return rng.normal(size=N_UNITS), couplings


def _pairwise_law(seed: int, beta: float, low: float) -> tuple[np.ndarray, np.ndarray]:
    biases, couplings = _couplings(seed)
    states = np.where(bits(N_UNITS) == 1, 1.0, low)
    logs = beta * (states @ biases + 0.5 * np.einsum("ni,ij,nj->n", states, couplings, states))
    return states, normalised(logs)


def gibbs_of_pairs(make: Callable[..., Any], low: float, clamped: bool) -> Callable[[int], Trial]:
    def trial(seed: int) -> Trial:
        machine = dense_pairwise(*_couplings(seed), states=(low, 1.0))
        mask = jnp.arange(N_UNITS) < 2 if clamped else None
        return Trial(*_pairwise_law(seed, 0.7, low), jax.jit(make(machine, beta=0.7, clamped=mask)))

    return trial


def sparse_sweeps(seed: int) -> Trial:
    biases, couplings = _couplings(seed)
    edges = np.argwhere(np.triu(np.ones((N_UNITS, N_UNITS)), 1))
    machine = sparse_pairwise(biases, edges, couplings[edges[:, 0], edges[:, 1]], states=(-1.0, 1.0))
    step = lambda key, x: sparse_gibbs(int(jax.random.bits(key)) >> 1, machine, np.asarray(x), 1, beta=0.7)  # noqa: E731
    return Trial(*_pairwise_law(seed, 0.7, -1.0), step)


def tempered_pairs(seed: int) -> Trial:
    """Two replicas side by side, each with its law."""
    machine = dense_pairwise(*_couplings(seed), states=(-1.0, 1.0))
    ladder = jnp.array([1.0, 0.4])
    states, cold = _pairwise_law(seed, 1.0, -1.0)
    hot = _pairwise_law(seed, 0.4, -1.0)[1]
    biases, couplings = (jnp.asarray(a, jnp.float32) for a in _couplings(seed))
    log_density = lambda x, at: at * (x @ biases + 0.5 * jnp.sum((x @ couplings) * x, axis=-1))  # noqa: E731
    kernel = lambda key, x, at: single_site_gibbs(machine, order="fixed", beta=at)(key, x)  # noqa: E731
    both = jax.jit(tempering(kernel, log_density, ladder))

    def step(key: Any, x: Any) -> Any:
        replicas = jnp.stack([x[:, :N_UNITS], x[:, N_UNITS:]])
        state = start_tempering(replicas[0], 2)._replace(replicas=replicas)
        return jnp.concatenate(list(both(key, state).replicas), axis=1)

    pairs = np.hstack([np.repeat(states, len(states), axis=0), np.tile(states, (len(states), 1))])
    return Trial(pairs, np.outer(cold, hot).ravel(), step)


# ------------------------------------------------------------------ harmoniums, layered and pairwise machines
COLUMNS = Columns(("binary", "categorical", "binary"), (1, 3, 1))
TABLE = Table(COLUMNS.kinds, COLUMNS.n_categories)
ROWS = np.array([[a, c, b] for a in (0.0, 1.0) for c in (0.0, 1.0, 2.0) for b in (0.0, 1.0)])
SEEN = jnp.array([True, False, False])


def _floats(*arrays: np.ndarray) -> tuple[Any, ...]:
    return tuple(jnp.asarray(a, jnp.float32) for a in arrays)


def _rbm(seed: int) -> RBMParams:
    rng = np.random.default_rng(seed)
    arrays = _floats(rng.normal(size=(TABLE.n_statistics, 2)), rng.normal(size=TABLE.n_statistics), rng.normal(size=2))
    return RBMParams(*arrays, jnp.asarray(rng.integers(0, 2, (20, 2)), bool))


def _arrays(params: RBMParams) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(a, np.float64) for a in (params.weights, params.visible_bias, params.hidden_bias))


def _rbm_joint(params: RBMParams) -> tuple[np.ndarray, np.ndarray]:
    """All states of rows and hidden units side by side, and their law."""
    weights, visible, hidden = (
        np.asarray(a, np.float64) for a in (params.weights, params.visible_bias, params.hidden_bias)
    )
    t, h = TABLE.statistics(ROWS), bits(2)
    logs = (t @ visible)[:, None] + t @ weights @ h.T + (h @ hidden)[None]
    return np.hstack([np.repeat(ROWS, 4, axis=0), np.tile(h, (len(ROWS), 1))]), normalised(logs.ravel())


def rbm_rows(seed: int) -> Trial:
    params = _rbm(seed)
    law = _rbm_joint(params)[1].reshape(-1, 4).sum(axis=1)
    return Trial(ROWS, law, jax.jit(lambda k, x: harmonium.gibbs_visible(k, params, x, COLUMNS)))


def rbm_hidden(seed: int) -> Trial:
    params = _rbm(seed)
    law = _rbm_joint(params)[1].reshape(-1, 4).sum(axis=0)
    return Trial(bits(2), law, jax.jit(lambda k, h: harmonium.gibbs_hidden(k, params, h, COLUMNS)))


def rbm_clamped(seed: int) -> Trial:
    """The observed cell beside the hidden units, both of one run."""
    params = _rbm(seed)
    states, law = _rbm_joint(params)

    def step(key: Any, now: Any) -> Any:
        clamp = jnp.pad(now[:, :1], ((0, 0), (0, 2))), jnp.broadcast_to(SEEN[None], (len(now), 3))
        return jnp.concatenate([now[:, :1], harmonium.gibbs_hidden(key, params, now[:, 1:], COLUMNS, clamp)], axis=1)

    return Trial(*_joined(states[:, [0, 3, 4]], law), jax.jit(step))


def _joined(states: np.ndarray, law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal states once, with the sum of their probabilities."""
    unique, whose = np.unique(states, axis=0, return_inverse=True)
    return unique, np.bincount(whose.ravel(), law)


def rbm_annealed(clamped: bool) -> Callable[[int], Trial]:
    """The kernel of annealed importance sampling halfway along its path."""

    def trial(seed: int) -> Trial:
        params = _rbm(seed)
        base = np.random.default_rng(seed + 1).normal(size=TABLE.n_statistics)
        row, seen = jnp.zeros(3), SEEN if clamped else None
        path = harmonium_annealing.Path(params, *_floats(base), row, seen, COLUMNS)
        rows = ROWS[ROWS[:, 0] == 0] if clamped else ROWS
        t = TABLE.statistics(rows)
        weights, visible, hidden = (
            np.asarray(a, np.float64) for a in (params.weights, params.visible_bias, params.hidden_bias)
        )
        logs = t @ ((1 - HALF) * base + HALF * visible) + softplus(HALF * (hidden + t @ weights)).sum(axis=1)
        return Trial(rows, normalised(logs), jax.jit(lambda k, x: path.kernel(k, x, jnp.float32(HALF))))

    return trial


def rbm_tempered(seed: int) -> Trial:
    """Three replicas of hidden units, at 0, a half and 1; the first two swap."""
    params = _rbm(seed)
    base = np.random.default_rng(seed + 1).normal(size=TABLE.n_statistics)
    t, h = TABLE.statistics(ROWS), bits(2)
    weights, visible, hidden = (
        np.asarray(a, np.float64) for a in (params.weights, params.visible_bias, params.hidden_bias)
    )
    laws = []
    for at in inverse_temperatures(3):
        logs = (t @ ((1 - at) * base + at * visible))[:, None] + at * (t @ weights @ h.T + (h @ hidden)[None])
        laws.append(normalised(logs.ravel()).reshape(-1, 4).sum(axis=0))
    states = np.array([[*h[i], *h[j], *h[k]] for i in range(4) for j in range(4) for k in range(4)])

    def step(key: Any, now: Any) -> Any:
        parity = jax.random.bernoulli(jax.random.fold_in(key, 5)).astype(jnp.int32)
        drawn, _ = tempered_step(key, params, *_floats(base), now.reshape(-1, 3, 2), COLUMNS, parity)
        return drawn.reshape(-1, 6)

    return Trial(states, np.einsum("i,j,k->ijk", *laws).ravel(), jax.jit(step))


def layered_sweeps(clamped: bool) -> Callable[[int], Trial]:
    """Three hidden layers of one or two units, with an observed cell or without."""

    def trial(seed: int) -> Trial:
        rng = np.random.default_rng(seed)
        sizes = (TABLE.n_statistics, 2, 1, 1)
        weights = [rng.normal(size=pair) for pair in itertools.pairwise(sizes)]
        biases = [rng.normal(size=n) for n in sizes]
        chains = (jnp.zeros((1, 2), bool), jnp.zeros((1, 1), bool))
        params = LayeredParams(_floats(*weights), *_floats(biases[0]), _floats(*biases[1:]), chains)
        hidden = bits(4)
        t = np.repeat(TABLE.statistics(ROWS), len(hidden), axis=0)
        h = np.tile(hidden, (len(ROWS), 1))
        one, two, three = h[:, :2], h[:, 2:3], h[:, 3:]
        logs = t @ biases[0] + one @ biases[1] + two @ biases[2] + three @ biases[3]
        for below, above, between in ((t, one, weights[0]), (one, two, weights[1]), (two, three, weights[2])):
            logs = logs + np.einsum("ni,ij,nj->n", below, between, above)
        states = np.column_stack([np.repeat(ROWS[:, 0], len(hidden)), one, three])  # the chains hold h1 and h3

        def step(key: Any, now: Any) -> Any:
            clamp = jnp.pad(now[:, :1], ((0, 0), (0, 2))), jnp.broadcast_to(SEEN[None], (len(now), 3))
            odd = layered.gibbs(key, params, (now[:, 1:3], now[:, 3:]), COLUMNS, clamp if clamped else None)
            return jnp.concatenate([now[:, :1], *odd], axis=1)

        law = normalised(logs)
        if not clamped:  # the first cell is then no part of the state, and stands still at 0
            states = states * np.array([0.0, 1, 1, 1])
        return Trial(*_joined(states, law), jax.jit(step))

    return trial


def pairwise_sweeps(which: str) -> Callable[[int], Trial]:
    """Sweeps of a Boltzmann machine: free, with two units clamped, or halfway along the path of annealing."""

    def trial(seed: int) -> Trial:
        bias, weights = _couplings(seed)
        params = PairwiseParams(*_floats(weights, bias), jnp.zeros((1, N_UNITS), bool))
        layout = pairwise.make_layout(~np.eye(N_UNITS, dtype=bool), 3)
        states = bits(N_UNITS)
        if which == "annealed":
            base = np.random.default_rng(seed + 1).normal(size=N_UNITS)
            path = pairwise_annealing.Path(params, *_floats(base), jnp.zeros(N_UNITS), jnp.zeros(N_UNITS, bool), layout)
            step = lambda k, s: path.kernel(k, s, jnp.float32(HALF))  # noqa: E731
            logs = HALF * 0.5 * np.einsum("ni,ij,nj->n", states, weights, states)
            logs = logs + states @ ((1 - HALF) * base + HALF * bias)
        else:
            known = jnp.arange(N_UNITS) < (2 if which == "clamped" else 0)
            step = lambda k, s: pairwise.sweep(k, params, s, layout, jnp.broadcast_to(known[None], s.shape))  # noqa: E731
            logs = 0.5 * np.einsum("ni,ij,nj->n", states, weights, states) + states @ bias
        return Trial(states, normalised(logs), jax.jit(step))

    return trial


# ------------------------------------------------------------------ moves of energies of any network
NETWORK_COLUMNS = Columns(("binary", "binary", "categorical", "count"), (1, 1, 3, 1))
NETWORK_ROWS = np.array(
    [[a, b, c, n] for a in (0.0, 1.0) for b in (0.0, 1.0) for c in (0.0, 1.0, 2.0) for n in np.arange(16.0)]
)


def network_moves(which: str) -> Callable[[int], Trial]:
    """One of the moves of an energy, or their random choice, at t = 1/2."""

    def trial(seed: int) -> Trial:
        columns, rows, rng = NETWORK_COLUMNS, NETWORK_ROWS, np.random.default_rng(seed)
        table = Table(columns.kinds, columns.n_categories)
        network = first_perceptron(jax.random.key(seed), columns, (4,), "tanh")
        network = jax.tree.map(lambda a: 3 * a, network)
        reference = 0.5 * rng.normal(size=table.n_statistics)
        params = first_params(network, columns)
        params = params.__class__(network, *_floats(reference), params.constant, params.log_steps)
        energy = perceptron(network.layers, table.features(rows))[:, 0]
        logs = table.log_cells(rows, np.float32(reference).astype(np.float64)[None])[:, 0] - HALF * energy
        kind, log_steps = Kind(columns, True), jnp.array([0.0, np.log(2.0)])
        jumps = {"flip": moves.FLIP, "flips": moves.FLIP_MANY, "step": moves.STEP_ONE}

        def step(key: Any, x: Any) -> Any:
            chains = moves.look(params, x, kind)
            if which == "path":
                return NetworkPath(params, kind, None, len(x)).kernel(key, chains, jnp.float32(HALF)).x
            target = moves.Target(params, kind, None, jnp.float32(HALF), log_steps)
            if which == "any":
                return moves.move(key, chains, target, len(x)).x
            variates = moves.Variates.draw(key, x, len(x))
            return moves.jump(variates, chains, target, (jumps[which],))[0].x

        return Trial(rows, normalised(logs), jax.jit(step))

    return trial


# ------------------------------------------------------------------ kernels on a line
class Line(NamedTuple):
    """A kernel on one real number: log density at nodes (m,), unnormalised, and step (key, (n, 1)) -> (n, 1)."""

    nodes: np.ndarray
    logs: np.ndarray
    step: Callable[[Any, Any], Any]


def check_line(name: str, line: Line, seed: int, size: Size) -> Finding:
    """The same for a density on a line: exact draws by its distribution function, and bins of equal probability."""
    rng = np.random.default_rng(seed)
    below = np.cumsum(normalised(line.logs))
    below = below - 0.5 * normalised(line.logs)  # at the nodes; a node's mass lies half to either side
    now = jnp.asarray(np.interp(rng.random(size.n_chains // 4), below, line.nodes)[:, None], jnp.float32)
    for number in range(N_MOVES):
        now = line.step(jax.random.key(1000 * seed + number), now)
    places = (np.interp(np.asarray(now, np.float64)[:, 0], line.nodes, below) * N_BINS).astype(int)
    counts = np.bincount(np.clip(places, 0, N_BINS - 1), minlength=N_BINS)
    return Finding(
        name, "leaves its law unchanged", findings.of_counts(counts, np.ones(N_BINS)), MOST_SURPRISE, "surprise"
    )


def network_langevin(seed: int) -> Line:
    """Leapfrog steps of an energy of one real cell, at t = 1/2."""
    columns = Columns(("real",), (1,))
    network = jax.tree.map(lambda a: 4 * a, first_perceptron(jax.random.key(seed), columns, (4,), "tanh"))
    params = first_params(network, columns)
    params = params.__class__(network, jnp.array([0.3, -0.5]), params.constant, params.log_steps)
    nodes = np.linspace(-9, 9, 4001)
    logs = 0.3 * nodes - 0.5 * nodes**2 - HALF * perceptron(network.layers, nodes[:, None])[:, 0]
    # Steps so long that many are refused, or nothing would hang on the refusal.
    target = moves.Target(params, Kind(columns, True), None, jnp.float32(HALF), jnp.array([0.8, 0.0]))

    def step(key: Any, x: Any) -> Any:
        variates = moves.Variates.draw(key, x, len(x))
        return moves.langevin(variates, moves.look(params, x, target.kind), target)[0].x

    return Line(nodes, logs, jax.jit(step))


def latent_moves(seed: int) -> Line:
    """Hamiltonian moves of the latent behind a row of an autoencoder, halfway from the prior to the posterior."""
    one = fitted(Case("VAE", "binary"), seed)
    module, row = one.model.params_, one.rows[:1]
    nodes = np.linspace(-8, 8, 4001)
    table = Table(("binary",) * 4, (1,) * 4)
    eta = table.natural(perceptron(module.decoder, nodes[:, None]), np.zeros(0))
    logs = -0.5 * nodes**2 + HALF * table.log_cells(row, eta)[0]
    x = jnp.asarray(row, jnp.float32)
    rows = annealed_latents._Rows(x, None, module.recognise(x, None))
    effort = annealed_latents.Effort(1, 1, 4)

    def step(key: Any, now: Any) -> Any:
        moved = annealed_latents._move(
            key, module, rows, now[None], jnp.float32(HALF), jnp.full(1, 0.5), "prior", effort
        )
        return moved[0][0]

    return Line(nodes, logs, eqx.filter_jit(step))


LINES: dict[str, Callable[[int], Line]] = {"energy, leapfrog": network_langevin, "latents, Hamiltonian": latent_moves}

KERNELS: dict[str, Callable[[int], Trial]] = {
    "block Gibbs": gibbs_of_pairs(block_gibbs, 0.0, False),
    "block Gibbs, clamped": gibbs_of_pairs(block_gibbs, -1.0, True),
    "single-site Gibbs": gibbs_of_pairs(single_site_gibbs, -1.0, False),
    "single-site Gibbs, clamped": gibbs_of_pairs(single_site_gibbs, 0.0, True),
    "sparse Gibbs": sparse_sweeps,
    "parallel tempering": tempered_pairs,
    "harmonium, rows": rbm_rows,
    "harmonium, hidden units": rbm_hidden,
    "harmonium, clamped": rbm_clamped,
    "harmonium, annealed": rbm_annealed(False),
    "harmonium, annealed and clamped": rbm_annealed(True),
    "harmonium, tempered": rbm_tempered,
    "layered machine": layered_sweeps(False),
    "layered machine, clamped": layered_sweeps(True),
    "Boltzmann machine": pairwise_sweeps("free"),
    "Boltzmann machine, clamped": pairwise_sweeps("clamped"),
    "Boltzmann machine, annealed": pairwise_sweeps("annealed"),
    "energy, one flip": network_moves("flip"),
    "energy, many flips": network_moves("flips"),
    "energy, one step": network_moves("step"),
    "energy, any move": network_moves("any"),
    "energy, annealed": network_moves("path"),
}

REAL_KERNELS: dict[str, Callable[[Any], Any]] = {
    "Hamiltonian": lambda f: hmc_kernel(f, step_size=0.3, inverse_mass=jnp.ones(2), n_leapfrog=4),
    "NUTS": lambda f: nuts_kernel(f, step_size=0.3, inverse_mass=jnp.ones(2), max_doublings=3),
    "Langevin": lambda f: langevin_kernel(f, step_size=0.1),
}
