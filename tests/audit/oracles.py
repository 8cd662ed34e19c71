"""What the models' densities are, once more, in NumPy and float64: nothing here calls a function of `likely`.

An oracle reads the learned arrays of a fitted model (`params_`, `cells_`, `schema_`, hyper-parameters) and writes the
model's equation down anew, as slowly as it likes: sums over all hidden states, quadrature over latents, normal
densities by SciPy. `log_density` is of complete rows; all else follows from it by sums over a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

from tests.audit.tables import N_CATEGORIES, Grid

ORDER = ("binary", "categorical", "count", "real")  # of the statistics of a table
MIN_SCALE = 1e-3  # that a decoder's real columns keep
_AT_ONCE = 1 << 22  # numbers of a table of rows and latents that are alive together


def softplus(a: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, a)


def bits(n: int) -> np.ndarray:
    """(2^n, n) all states of n bits."""
    return np.array(list(product((0.0, 1.0), repeat=n))).reshape(2**n, n)


def array(values: Any) -> np.ndarray:
    return np.asarray(values, np.float64)


# ------------------------------------------------------------------ columns
class Table:
    """Where the statistics of each column stand, and what they are."""

    def __init__(self, kinds: tuple[str, ...], sizes: tuple[int, ...]):
        self.kinds, self.sizes = kinds, sizes
        self.places: list[list[int]] = [[] for _ in kinds]  # of each column's statistics
        self.locations: list[list[int]] = [[] for _ in kinds]  # and of its locations, which have no squares
        start = first = 0
        for kind in ORDER:
            counts = {"binary": [1], "count": [1], "real": [2]}.get(kind) or list(dict.fromkeys(
                sizes[i] for i, own in enumerate(kinds) if own == kind
            ))  # fmt: skip
            for n in counts:
                own = [i for i, k in enumerate(kinds) if k == kind and (kind != "categorical" or sizes[i] == n)]
                for s in range(n):
                    for at, i in enumerate(own):
                        self.places[i].append(start + s * len(own) + at)
                        if kind != "real" or s == 0:
                            self.locations[i].append(first + s * len(own) + at)
                start += n * len(own)
                first += (1 if kind == "real" else n) * len(own)
        self.n_statistics, self.n_locations = start, first

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """T(x) (n, D)."""
        out = np.zeros((len(rows), self.n_statistics))
        for i, (kind, places) in enumerate(zip(self.kinds, self.places, strict=True)):
            if kind == "categorical":
                out[np.arange(len(rows)), np.array(places)[rows[:, i].astype(int)]] = 1
            else:
                out[:, places[0]] = rows[:, i]
            if kind == "real":
                out[:, places[1]] = rows[:, i] ** 2
        return out

    def log_base(self, rows: np.ndarray) -> np.ndarray:
        """log h(x) (n,)."""
        counts = [gammaln(rows[:, i] + 1) for i, kind in enumerate(self.kinds) if kind == "count"]
        return -np.sum(counts, axis=0) if counts else np.zeros(len(rows))

    def log_cells(self, rows: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """log p(x | eta) (n, m) of rows under m vectors of natural parameters, normalised column by column."""
        total = np.zeros((len(rows), len(eta)))
        for i, (kind, places) in enumerate(zip(self.kinds, self.places, strict=True)):
            x, own = rows[:, i, None], eta[:, places]
            if kind == "binary":
                total += stats.bernoulli.logpmf(x, 1 / (1 + np.exp(-own[:, 0]))[None])
            elif kind == "categorical":
                total += (own - logsumexp(own, axis=1, keepdims=True))[:, rows[:, i].astype(int)].T
            elif kind == "count":
                total += stats.poisson.logpmf(x, np.exp(own[:, 0])[None])
            else:
                variance = -0.5 / own[:, 1]
                total += stats.norm.logpdf(x, (own[:, 0] * variance)[None], np.sqrt(variance)[None])
        return total

    def natural(self, location: np.ndarray, log_scale: np.ndarray) -> np.ndarray:
        """Natural parameters (m, D) of a decoder's locations (m, L)."""
        out, scales = np.zeros((len(location), self.n_statistics)), MIN_SCALE + np.exp(log_scale)
        reals = [i for i, kind in enumerate(self.kinds) if kind == "real"]
        for i, places in enumerate(self.places):
            own = location[:, self.locations[i]]
            if self.kinds[i] == "real":
                precision = scales[reals.index(i)] ** -2
                out[:, places[0]], out[:, places[1]] = own[:, 0] * precision, -0.5 * precision
            else:
                out[:, places] = own
        return out

    def features(self, rows: np.ndarray) -> np.ndarray:
        """What a network reads (n, L): x, one-hot categories, log(1 + count)."""
        out = np.zeros((len(rows), self.n_locations))
        for i, (kind, places) in enumerate(zip(self.kinds, self.locations, strict=True)):
            if kind == "categorical":
                out[np.arange(len(rows)), np.array(places)[rows[:, i].astype(int)]] = 1
            else:
                out[:, places[0]] = np.log1p(rows[:, i]) if kind == "count" else rows[:, i]
        return out


def table_of(model: Any) -> Table:
    columns = model.schema_.columns
    return Table(tuple(c.kind for c in columns), tuple(len(c.categories or (0,)) for c in columns))


def perceptron(network: Any, x: np.ndarray) -> np.ndarray:
    """A network of linear layers with tanh between them."""
    for number, layer in enumerate(network.layers):
        x = (np.tanh(x) if number else x) @ array(layer.weight).T + array(layer.bias)
    return x


# ------------------------------------------------------------------ the models, in standard units
LogDensity = Callable[[np.ndarray], np.ndarray]


def summed(rows: np.ndarray, eta: np.ndarray, log_weights: np.ndarray, table: Table) -> np.ndarray:
    """log Σ_j w_j p(x | eta_j) of rows (n,)."""
    step = max(1, _AT_ONCE // len(eta))
    parts = [rows[i : i + step] for i in range(0, len(rows), step)]
    return np.concatenate([logsumexp(table.log_cells(part, eta) + log_weights[None], axis=1) for part in parts])


def independent(model: Any) -> LogDensity:
    table, eta = table_of(model), array(model.params_.eta)[None]
    return lambda rows: table.log_cells(rows, eta)[:, 0]


def mixture(model: Any) -> LogDensity:
    table, p = table_of(model), model.params_
    if p.gaussian is None:
        return lambda rows: summed(rows, array(p.eta), array(p.log_weights), table)
    real = [i for i, kind in enumerate(table.kinds) if kind == "real"]
    rest = [i for i in range(len(table.kinds)) if i not in real]
    others = Table(tuple(table.kinds[i] for i in rest), tuple(table.sizes[i] for i in rest))
    k = len(p.log_weights)
    roots = np.broadcast_to(array(p.gaussian.scale_tril), (k, len(real), len(real)))

    def log_density(rows: np.ndarray) -> np.ndarray:
        joint = np.tile(array(p.log_weights), (len(rows), 1))
        if rest:
            joint += others.log_cells(rows[:, rest], array(p.eta))
        for c in range(k):
            joint[:, c] += normal(rows[:, real], array(p.gaussian.means)[c], roots[c] @ roots[c].T)
        return logsumexp(joint, axis=1)

    return log_density


def normal(rows: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    return np.atleast_1d(stats.multivariate_normal(mean, covariance).logpdf(rows))


def linear_gaussian(model: Any) -> LogDensity:
    p = model.params_
    loadings, offset = array(p.loadings), array(p.offset)
    covariance = loadings @ loadings.T + np.diag(np.broadcast_to(array(p.noise), offset.shape))
    return lambda rows: normal(rows, offset, covariance)


def generator(model: Any) -> LogDensity:
    p = model.params_
    skew, tail, root = array(p.skew), np.exp(array(p.log_tail)), array(p.block.scale_tril)[0]

    def log_density(rows: np.ndarray) -> np.ndarray:
        angle = tail * np.arcsinh(rows) - skew
        slopes = np.log(tail * np.cosh(angle) / np.sqrt(1 + rows**2))
        return normal(np.sinh(angle), array(p.block.means)[0], root @ root.T) + slopes.sum(axis=1)

    return log_density


def rbm(model: Any) -> LogDensity:
    return harmonium(table_of(model), model.params_)


def harmonium(table: Table, p: Any) -> LogDensity:
    hidden = bits(len(p.hidden_bias))

    def log_density(rows: np.ndarray) -> np.ndarray:
        t = table.statistics(rows)
        coupled = (
            array(p.hidden_bias) + t @ array(p.weights)
        ) @ hidden.T  # every hidden state, none summed in closed form
        return t @ array(p.visible_bias) + table.log_base(rows) + logsumexp(coupled, axis=1)

    return log_density


def boltzmann(model: Any) -> LogDensity:
    weights, bias = array(model.params_.weights), array(model.params_.bias)
    own = getattr(model, "units", "pm1")

    def log_density(rows: np.ndarray) -> np.ndarray:
        hidden = bits(len(bias) - rows.shape[1])
        states = np.hstack([np.repeat(rows, len(hidden), axis=0), np.tile(hidden, (len(rows), 1))])
        states = 2 * states - 1 if own == "pm1" else states
        value = model.beta * (0.5 * np.einsum("ni,ij,nj->n", states, weights, states) + states @ bias)
        return logsumexp(value.reshape(len(rows), -1), axis=1)

    return log_density


def hopfield(model: Any) -> LogDensity:
    if model.memory == "pairwise":
        return boltzmann(model)
    patterns = array(model.params_.patterns)
    return lambda rows: logsumexp(model.beta * (2 * rows - 1) @ patterns.T, axis=1)


def dbn(model: Any) -> LogDensity:
    table, p = table_of(model), model.params_
    first, second = bits(p.down[0].shape[1]), bits(len(p.top.hidden_bias))
    assert len(p.down) == 1, "the oracle knows two hidden layers"
    top = (first @ array(p.top.visible_bias))[:, None] + (
        array(p.top.hidden_bias) + first @ array(p.top.weights)
    ) @ second.T
    prior = logsumexp(top, axis=1) - logsumexp(top)
    eta = first @ array(p.down[0]).T + array(p.down_biases[0])
    return lambda rows: summed(rows, eta, prior, table)


def dbm(model: Any) -> LogDensity:
    table, p = table_of(model), model.params_
    first, second = (bits(len(bias)) for bias in p.hidden_biases)
    above = first @ array(p.weights[1]) @ second.T + (second @ array(p.hidden_biases[1]))[None]
    own = first @ array(p.hidden_biases[0]) + logsumexp(above, axis=1)

    def log_density(rows: np.ndarray) -> np.ndarray:
        t = table.statistics(rows)
        coupled = t @ array(p.weights[0]) @ first.T + own[None]
        return t @ array(p.visible_bias) + table.log_base(rows) + logsumexp(coupled, axis=1)

    return log_density


def energy_model(model: Any) -> LogDensity:
    table, p = table_of(model), model.params_

    def log_density(rows: np.ndarray) -> np.ndarray:
        energy = perceptron(p.network.layers, table.features(rows) - array(p.network.offset))[:, 0]
        return table.log_cells(rows, array(p.reference)[None])[:, 0] - energy

    return log_density


def normal_nodes(n_latent: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (m, k) and log weights of standard normal latents, by a trapezoid rule over eight deviations."""
    axis = np.linspace(-8, 8, 321 if n_latent == 1 else 65)
    nodes = np.array(list(product(axis, repeat=n_latent)))
    log_weights = stats.norm.logpdf(nodes).sum(axis=1) + n_latent * np.log(axis[1] - axis[0])
    return nodes, log_weights


def vae(model: Any) -> LogDensity:
    p = model.params_
    assert p.latent_prior is None, "the oracle knows a standard normal prior"
    z, log_weights = normal_nodes(p.n_latent)
    return decoded(model, perceptron(p.decoder, z), log_weights)


def deep_latent_gaussian(model: Any) -> LogDensity:
    p = model.params_
    assert p.decoder.sizes == (1, 1), "the oracle knows two layers of one latent each"
    z, log_weights = normal_nodes(2)
    lower = perceptron(p.decoder.between[0], z[:, 1:]) + z[:, :1]
    return decoded(model, perceptron(p.decoder.output, lower), log_weights)


def discrete_vae(model: Any) -> LogDensity:
    p = model.params_
    assert p.upper is None, "the oracle knows one layer"
    assert p.prior.ndim == 1, "the oracle knows bits"
    z = bits(p.n_lower)
    log_weights = z @ array(p.prior) - softplus(array(p.prior)).sum()
    return decoded(model, perceptron(p.decoder, 2 * z - 1), log_weights)  # networks read bits as -1 and 1


def decoded(model: Any, location: np.ndarray, log_weights: np.ndarray) -> LogDensity:
    table = table_of(model)
    eta = table.natural(location, array(model.params_.log_scale))
    return lambda rows: summed(rows, eta, log_weights, table)


def autoregressive(model: Any) -> LogDensity:
    """The average over orders of products of conditionals, each cell of each row by itself."""
    one = {"linear": linear_chain, "trees": tree_chain}[model.conditional](model)
    n_chains = len(model.params_.orders)
    return lambda rows: logsumexp([one(c, rows) for c in range(n_chains)], axis=0) - np.log(n_chains)


def linear_chain(model: Any) -> Callable[[int, np.ndarray], np.ndarray]:
    table, p = table_of(model), model.params_
    reals = [i for i, kind in enumerate(table.kinds) if kind == "real"]

    def log_density(chain: int, rows: np.ndarray) -> np.ndarray:
        features, total = table.features(rows) - array(p.centre), np.zeros(len(rows))
        order = list(np.asarray(p.orders)[chain])
        for place, j in enumerate(order):
            own = table.locations[j]
            before = [f for i in order[:place] for f in table.locations[i]]
            location = array(p.bias)[chain, own] + features[:, before] @ array(p.weights)[chain][np.ix_(own, before)].T
            x = rows[:, j]
            if table.kinds[j] == "binary":
                total += stats.bernoulli.logpmf(x, 1 / (1 + np.exp(-location[:, 0])))
            elif table.kinds[j] == "categorical":
                total += location[np.arange(len(x)), x.astype(int)] - logsumexp(location, axis=1)
            elif table.kinds[j] == "count":
                total += stats.poisson.logpmf(x, np.exp(location[:, 0]))
            else:
                scale = MIN_SCALE + np.exp(array(p.log_scale)[chain, reals.index(j)])
                total += stats.norm.logpdf(x, location[:, 0], scale)
        return total

    return log_density


def tree_chain(model: Any) -> Callable[[int, np.ndarray], np.ndarray]:
    p, kinds = model.params_, table_of(model).kinds
    assert "real" not in kinds, "a jump at a threshold is beyond a trapezoid rule"
    feature, child, bits, value = (np.asarray(a) for a in (p.feature, p.child, p.bits, p.value))
    n_classes, starts, edges = (np.asarray(a) for a in (p.n_classes, p.starts, p.edges))

    def probability(chain: int, row: np.ndarray, j: int) -> float:
        found = []
        for node in np.asarray(p.roots)[chain, j]:
            while feature[node] >= 0:
                f = feature[node]
                code = int(edges[starts[f] + min(int(row[f]), n_classes[f] - 1)])
                inside = int(bits[node, code // 32]) >> (code % 32) & 1
                node = child[node] if inside else child[node] + 1
            law = array(p.tables)[value[node] : value[node] + n_classes[j]]
            if kinds[j] == "count" and row[j] >= n_classes[j] - 1:
                stay = float(p.stays[j])
                found.append(law[-1] * (1 - stay) * stay ** (row[j] - n_classes[j] + 1))
            else:
                found.append(law[int(row[j])])
        return float(np.mean(found))

    def log_density(chain: int, rows: np.ndarray) -> np.ndarray:
        return np.array([sum(np.log(probability(chain, row, j)) for j in range(len(row))) for row in rows])

    return log_density


def bayesian_network(model: Any) -> LogDensity:
    """The product of p(node | parents): tables, Gaussians with a line in the real parents, and rates."""
    nodes = list(zip(model._layout.nodes, model.params_.nodes, strict=True))

    def log_density(rows: np.ndarray) -> np.ndarray:
        total = np.zeros(len(rows))
        for node, p in nodes:
            x, given = rows[:, node.place], tuple(rows[:, parent].astype(int) for parent in node.discrete)
            if node.kind == "real":
                weights, variance = array(p.weights)[given], array(p.variance)[given]
                inputs = np.column_stack([np.ones(len(rows)), rows[:, list(node.real)]])
                total += stats.norm.logpdf(x, (weights * inputs).sum(axis=-1), np.sqrt(variance))
            elif node.kind == "count":
                total += stats.poisson.logpmf(x, array(p.rate)[given])
            else:
                total += np.log(array(p.table)[(*given, x.astype(int))])
        return total

    return log_density


def markov_field(model: Any) -> LogDensity:
    """The product of potentials over its sum, by enumeration; other columns on their own."""
    kinds, n_states = table_of(model).kinds, table_of(model).sizes
    sizes = [{"binary": 2, "categorical": n}.get(kind, 1) for kind, n in zip(kinds, n_states, strict=True)]
    factors = list(zip(model.scopes_, model.params_.logs, strict=True))
    beside = [i for i, kind in enumerate(kinds) if kind in ("real", "count")]
    own = array(model.params_.alone).reshape(-1, 2)

    def energy(states: np.ndarray) -> np.ndarray:
        return sum((array(logs)[tuple(states[:, v] for v in s)] for s, logs in factors), np.zeros(len(states)))

    log_z = logsumexp(energy(np.array(list(product(*map(range, sizes))))))

    def log_density(rows: np.ndarray) -> np.ndarray:
        total = energy(rows.astype(int)) - log_z
        for place, (a, b) in zip(beside, own, strict=True):
            x = rows[:, place]
            total += stats.poisson.logpmf(x, a) if kinds[place] == "count" else stats.norm.logpdf(x, a, np.sqrt(b))
        return total

    return log_density


def stack(model: Any) -> LogDensity:
    """The weighted sum of the members' densities, each in its own units."""

    def log_density(rows: np.ndarray) -> np.ndarray:
        logs = []
        for member, weight in zip(model.members_, model.weights_, strict=True):
            offset, scale = array(member.cells_.scaling.offset), array(member.cells_.scaling.scale)
            own = ORACLES[type(member).__name__](member)((rows - offset) / scale) - np.log(scale).sum()
            logs.append(np.log(weight) + own)
        return logsumexp(logs, axis=0)

    return log_density


def circuit(model: Any) -> LogDensity:
    """Blocks of numbers a row, one after the other: leaves, products, sums with rows that sum to one, side by side."""
    kinds, n_states = table_of(model).kinds, table_of(model).sizes
    terms, leaves = array(model.params_.terms), array(model.params_.leaves)

    def leaf_logs(x: np.ndarray, kind: str, table: np.ndarray) -> np.ndarray:
        if kind == "real":
            return stats.norm.logpdf(x[:, None], table[1], np.sqrt(table[2]))
        if kind == "count":
            return stats.poisson.logpmf(x[:, None], table[1])
        with np.errstate(divide="ignore"):
            return np.log(table / table.sum(axis=0))[x.astype(int)]

    def log_density(rows: np.ndarray) -> np.ndarray:
        blocks: list[np.ndarray] = []
        at_terms = at_leaves = 0
        for name, size, *parts in model.plan_:
            if name == "leaf":
                kind = kinds[parts[0]]
                n = {"binary": 2, "categorical": n_states[parts[0]], "count": 2, "real": 3}[kind]
                table = leaves[at_leaves : at_leaves + n * size].reshape(n, size)
                at_leaves += n * size
                blocks.append(leaf_logs(rows[:, parts[0]], kind, table))
            elif name == "sum":
                below = blocks[parts[0]]
                matrix = terms[at_terms : at_terms + size * below.shape[1]].reshape(size, -1)
                at_terms += matrix.size
                matrix = matrix / matrix.sum(axis=1, keepdims=True)
                blocks.append(np.stack([logsumexp(below, axis=1, b=row) for row in matrix], axis=1))
            elif name == "product":
                blocks.append(sum(blocks[part] for part in parts))  # type: ignore[arg-type]
            else:
                blocks.append(np.concatenate([blocks[part] for part in parts], axis=1))
        return blocks[-1][:, 0]

    return log_density


ORACLES: dict[str, Callable[[Any], LogDensity]] = {
    "Independent": independent,
    "Autoregressive": autoregressive,
    "BayesianNetwork": bayesian_network,
    "MarkovField": markov_field,
    "TreeMixture": circuit,
    "Circuit": circuit,
    "Mixture": mixture,
    "ProbabilisticPCA": linear_gaussian,
    "FactorAnalysis": linear_gaussian,
    "Generator": generator,
    "Stack": stack,
    "Hopfield": hopfield,
    "BoltzmannMachine": boltzmann,
    "RBM": rbm,
    "DBN": dbn,
    "DBM": dbm,
    "EnergyModel": energy_model,
    "VAE": vae,
    "DiscreteVAE": discrete_vae,
    "DeepLatentGaussian": deep_latent_gaussian,
}
UNNORMALISED = {"Hopfield", "BoltzmannMachine", "RBM", "DBM", "EnergyModel"}  # the grid gives their log Z
WITHOUT = {"LinearAutoencoder", "Autoencoder", "GAN"}  # that have no likelihood


class Law:
    """A fitted model's distribution over a grid of all rows, by its oracle."""

    def __init__(self, model: Any, grid: Grid):
        name = type(model).__name__
        offset, scale = array(model.cells_.scaling.offset), array(model.cells_.scaling.scale)
        logs = ORACLES[name](model)((grid.rows - offset) / scale) - np.log(scale).sum()
        masses = logs + np.log(grid.steps).sum()
        if name in UNNORMALISED:
            logs, masses = logs - logsumexp(masses), masses - logsumexp(masses)
        self.grid, self.log_density = grid, logs
        self.total = float(np.exp(logsumexp(masses)))  # 1, unless the grid or the oracle is wrong
        self.shares = np.exp(masses).reshape(grid.shape)

    @property
    def beyond(self) -> float:
        """Share of the last values of columns that have no last one: what may lie beyond the grid."""
        ends = [a for a, axis in enumerate(self.grid.axes) if len(axis) > N_CATEGORIES]
        return max((float(self.shares.take(-1, axis=a).sum()) for a in ends), default=0.0)

    def marginal(self, observed: np.ndarray) -> np.ndarray:
        """Shares of the observed cells, the others summed out."""
        return self.shares.sum(axis=tuple(np.flatnonzero(~observed)))

    def log_marginal(self, places: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """log p of the observed cells of rows at places (n, d) of the grid, as a density in real columns."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.marginal(observed)) - np.log(self.grid.steps[observed]).sum()
        return logs[tuple(places[:, observed].T)] if observed.any() else np.full(len(places), float(logs))

    def conditional(self, places: np.ndarray, observed: np.ndarray) -> np.ndarray:
        """Shares of the unobserved cells given the observed ones of one row at places (d,)."""
        index = tuple(int(p) if seen else slice(None) for p, seen in zip(places, observed, strict=True))
        part = self.shares[index]
        return part / part.sum()

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """(n, d) places of rows drawn from the law."""
        flat = rng.choice(self.shares.size, n, p=self.shares.ravel() / self.shares.sum())
        return np.stack(np.unravel_index(flat, self.shares.shape), axis=1)

    def rows(self, places: np.ndarray) -> np.ndarray:
        return np.stack([axis[places[..., i]] for i, axis in enumerate(self.grid.axes)], axis=-1)
