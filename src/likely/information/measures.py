"""The quantities of information, each one verb for distributions, counts, samples and fitted models.

Notes 000, Eq. 20-24: H(p) = -E_p log p, H(p, q) = -E_p log q, KL(p‖q) = H(p, q) - H(p). Closed forms where there are
any, else averages of draws, with their error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.information import counts as of_counts
from likely.information import fitted, samples
from likely.information.counts import Counts
from likely.information.distributions import Axes, Discrete, Distribution, as_distribution
from likely.information.quantity import Information
from likely.information.samples import Samples

N_DRAWS = 10_000  # of which an average of nats is known to a hundredth of their spread

Columns = int | str | Sequence[int] | Sequence[str]


def entropy(p: Any, *, n_draws: int = N_DRAWS, random_state: int = 0) -> Information:
    """H(p) = -E log p(x): how uncertain a draw is; of densities it is relative to their units, and may be negative.

    Parameters
    ----------
    p : a table of probabilities, `Counts`, `Samples`, a `Gaussian`, a `ColumnFamily`, a `Density`, a frozen
        distribution of SciPy, or a fitted model.
    n_draws : behind what has no closed form. random_state : seed of the draws.

    Examples
    --------
    >>> entropy([0.5, 0.25, 0.25]).bits
    1.5
    >>> from scipy import stats
    >>> print(entropy(stats.gamma(3)))                                     # 1.848 by quadrature
    ≈ 1.8... ± 0.00... nats (estimate, 10,000 draws)
    """
    if isinstance(p, Counts):
        return of_counts.count_entropy(p)
    if isinstance(p, Samples):
        return samples.sample_entropy(p)
    if fitted.is_fitted_model(p):
        return fitted.FittedModel(p, n_draws, random_state).expected((-1, p, None))
    p = as_distribution(p)
    exact = p.entropy()
    if exact is not None:
        return Information.exact(exact, "closed form")
    x = p.sample(np.random.default_rng(random_state), n_draws)
    return Information.averaged(-p.log_prob(x), f"{n_draws:,} draws")


def kl(p: Any, q: Any, *, n_draws: int = N_DRAWS, random_state: int = 0) -> Information:
    """KL(p‖q) = E_p log p(x)/q(x) ≥ 0: the nats a draw of p costs more if it is taken for one of q.

    Of two fitted models it is exact where all rows can be enumerated and both evidences are exact, a bound where one
    evidence is a bound, else an estimate; models on unlike measures are refused.

    Parameters
    ----------
    p, q : as in `entropy`, of one kind.
    n_draws, random_state : as in `entropy`; the draws are of p.

    Examples
    --------
    >>> from likely.information import Gaussian
    >>> print(kl(Gaussian(0, 1), Gaussian(1, 1)))
    0.500 nats (exact, closed form)
    >>> kl([0.5, 0.5], [1.0, 0.0]).value
    inf
    """
    return _of_two(p, q, n_draws, random_state, of_counts.count_kl, samples.sample_kl, _kl_of_models, _kl)


def cross_entropy(p: Any, q: Any, *, n_draws: int = N_DRAWS, random_state: int = 0) -> Information:
    """H(p, q) = -E_p log q(x) = H(p) + KL(p‖q): the nats that a code made for q needs a draw of p.

    Parameters
    ----------
    p, q : as in `entropy`, of one kind; counts and samples left out.
    n_draws, random_state : as in `kl`.

    Examples
    --------
    >>> cross_entropy([0.5, 0.5], [0.75, 0.25]).bits == entropy([0.5, 0.5]).bits + kl([0.5, 0.5], [0.75, 0.25]).bits
    True
    """
    return _of_two(p, q, n_draws, random_state, _no_cross_entropy, _no_cross_entropy, _cross_of_models, _cross_entropy)


def jensen_shannon(p: Any, q: Any, *, n_draws: int = N_DRAWS, random_state: int = 0) -> Information:
    """½ KL(p‖m) + ½ KL(q‖m) with m = ½(p + q): symmetric, from 0 to log 2.

    Parameters
    ----------
    p, q : as in `kl`; samples left out, and models whose evidence is not exact.
    n_draws, random_state : as in `kl`; so many draws of each.

    Examples
    --------
    >>> jensen_shannon([1.0, 0.0], [0.0, 1.0]).bits
    1.0
    """
    counted = of_counts.count_jensen_shannon
    return _of_two(p, q, n_draws, random_state, counted, _no_mixture, fitted.model_jensen_shannon, _jensen_shannon)


def conditional_entropy(
    p: Any, of: Columns = 1, given: Columns = 0, *, n_draws: int = N_DRAWS, random_state: int = 0
) -> Information:
    """H(of | given) = H(of, given) - H(given): what is uncertain of some variables once others are known.

    Parameters
    ----------
    p : as in `entropy`, of several variables: a table with an axis for each, columns, or a fitted model.
    of, given : axes, or columns by name or place; one or several.
    n_draws, random_state : as in `entropy`.

    Examples
    --------
    >>> round(conditional_entropy([[0.5, 0.0], [0.25, 0.25]]).bits, 12)    # a fair coin in half of the cases
    0.5
    """
    if fitted.is_fitted_model(p):
        own, known = (fitted.places_of(p, columns) for columns in (of, given))
        _check_apart(own, known)
        return fitted.FittedModel(p, n_draws, random_state).expected((-1, p, [*own, *known]), (1, p, known))
    p, a, b = _variables(p, of, given)
    if isinstance(p, Counts):
        value = p.marginal((*a, *b)).entropy() - p.marginal(b).entropy()
        return Information.estimate(value, np.sqrt(_conditional_spread(p, a, b) / p.n_rows), p.method)
    if isinstance(p, Samples):
        both, alone = (samples.sample_entropy(p.marginal(axes)) for axes in ((*a, *b), b))
        # Errors of two entropies of the same rows may add up.
        return Information.estimate(both.value - alone.value, both.stderr + alone.stderr, p.method)
    h_both, h_given = _exact_marginals(p, (*a, *b), b)
    return Information.exact(h_both - h_given, "closed form")


def mutual_information(
    p: Any, a: Columns = 0, b: Columns = 1, *, n_draws: int = N_DRAWS, random_state: int = 0
) -> Information:
    """I(a; b) = E log p(a, b) / p(a) p(b) = H(b) - H(b | a): what two sets of variables tell of each other.

    Parameters
    ----------
    p, a, b : as in `conditional_entropy`.
    n_draws, random_state : as in `entropy`.

    Examples
    --------
    >>> mutual_information([[0.5, 0.0], [0.0, 0.5]]).bits
    1.0
    >>> from likely.information import Gaussian
    >>> round(mutual_information(Gaussian([0, 0], [[1, 0.6], [0.6, 1]])).value, 4)
    0.2231
    """
    if fitted.is_fitted_model(p):
        places, others = (fitted.places_of(p, columns) for columns in (a, b))
        _check_apart(places, others)
        terms = (1, p, [*places, *others]), (-1, p, places), (-1, p, others)
        return fitted.FittedModel(p, n_draws, random_state).expected(*terms)
    p, one, other = _variables(p, a, b)
    if isinstance(p, Counts):
        tables = (p.marginal(one), p.marginal(other), p.marginal((*one, *other)))
        h_a, h_b, h_both = (table.entropy() for table in tables)
        joint = _two_way(p, one, other)
        return Information.estimate(h_a + h_b - h_both, of_counts.information_stderr(joint, p.n_rows), p.method)
    if isinstance(p, Samples):
        return samples.sample_information(p, one, other)
    h_a, h_b, h_both = _exact_marginals(p, one, other, (*one, *other))
    return Information.exact(h_a + h_b - h_both, "closed form")


def pmi(p: Any, rows: Any = None, a: Columns = 0, b: Columns = 1) -> np.ndarray:
    """Pointwise mutual information log p(a, b) / p(a) p(b), in nats: of every cell of a table, or of rows by a model.

    Of what never occurs it is -inf; of counts it is that of the shares, which is not corrected for chance.

    Parameters
    ----------
    p : a table of probabilities, or `Counts`, of two variables; or a fitted model whose evidence is exact.
    rows : (n, d) of which a model is asked. a, b : two sets of its columns.

    Returns
    -------
    array
        Of the table's shape, or (n,) of the rows.

    Examples
    --------
    >>> pmi([[0.4, 0.1], [0.1, 0.4]]).round(3).tolist()
    [[0.47, -0.916], [-0.916, 0.47]]
    """
    if fitted.is_fitted_model(p):
        one, other = (fitted.places_of(p, columns) for columns in (a, b))
        _check_apart(one, other)
        return fitted.pointwise(p, rows, one, other)
    table = p.shares if isinstance(p, Counts) else Discrete(p).probabilities
    if table.ndim != 2:
        raise ValueError(f"`pmi` is of a table of two variables, got one of {table.ndim}.")
    chance = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(table > 0, np.log(table) - np.log(chance), -np.inf)


def perplexity(p: Any, *, n_draws: int = N_DRAWS, random_state: int = 0) -> float:
    """Exp H(p): how many equally probable values would be as uncertain.

    >>> perplexity([0.25] * 4)
    4.0
    """
    return entropy(p, n_draws=n_draws, random_state=random_state).perplexity


# ------------------------------------------------------------------ two of a kind
def _of_two(p: Any, q: Any, n: int, seed: int, counted: Any, sampled: Any, modelled: Any, general: Any) -> Information:
    """Hand two of a kind to the function for that kind; refuse two that are over different things."""
    if isinstance(p, Counts) and isinstance(q, Counts):
        if p.table.shape != q.table.shape:
            raise ValueError(f"tables of counts of shapes {p.table.shape} and {q.table.shape} are of other values.")
        return counted(p, q)
    if isinstance(p, Samples) and isinstance(q, Samples):
        return sampled(p, q)
    if fitted.is_fitted_model(p) and fitted.is_fitted_model(q):
        return modelled(p, q, n, seed)
    unlike = [x for x in (p, q) if isinstance(x, Counts | Samples) or fitted.is_fitted_model(x)]
    if unlike:
        raise TypeError(
            f"cannot compare a {type(p).__name__} with a {type(q).__name__}: give two tables of counts, two samples, "
            "two fitted models, or two distributions."
        )
    p, q = as_distribution(p), as_distribution(q)
    if p.support != q.support:
        raise ValueError(f"the two are over different things: {p.support}, and {q.support}.")
    return general(p, q, n, seed)


def _kl(p: Distribution, q: Distribution, n: int, seed: int) -> Information:
    exact = p.kl(q)
    if exact is not None:
        return Information.exact(exact, "closed form")
    x = p.sample(np.random.default_rng(seed), n)
    return Information.averaged(p.log_prob(x) - q.log_prob(x), f"{n:,} draws")


def _cross_entropy(p: Distribution, q: Distribution, n: int, seed: int) -> Information:
    own, more = p.entropy(), p.kl(q)
    if own is not None and more is not None:
        return Information.exact(own + more, "closed form")
    return Information.averaged(-q.log_prob(p.sample(np.random.default_rng(seed), n)), f"{n:,} draws")


def _jensen_shannon(p: Distribution, q: Distribution, n: int, seed: int) -> Information:
    if isinstance(p, Discrete) and isinstance(q, Discrete):
        middle = Discrete((p.probabilities + q.probabilities) / 2)
        return Information.exact(0.5 * (p.kl(middle) + q.kl(middle)), "closed form")  # type: ignore[operator]
    rng, means = np.random.default_rng(seed), []
    for own, other in ((p, q), (q, p)):
        x = own.sample(rng, n)
        terms = np.log(2) - np.logaddexp(0, other.log_prob(x) - own.log_prob(x))
        means.append(Information.averaged(terms, ""))
    value, stderr = (means[0].value + means[1].value) / 2, 0.5 * np.hypot(means[0].stderr, means[1].stderr)
    return Information.estimate(value, stderr, f"{n:,} draws of each")


def _kl_of_models(p: Any, q: Any, n: int, seed: int) -> Information:
    side = fitted.FittedModel(p, n, seed)
    fitted.check_alike(p, q, side.rows)
    return side.expected((1, p, None), (-1, q, None))


def _cross_of_models(p: Any, q: Any, n: int, seed: int) -> Information:
    side = fitted.FittedModel(p, n, seed)
    fitted.check_alike(p, q, side.rows)
    return side.expected((-1, q, None))


def _no_cross_entropy(p: Any, q: Any) -> Information:
    raise TypeError(f"the cross-entropy of two {type(p).__name__} is not estimated: ask for `kl` and `entropy`.")


def _no_mixture(p: Samples, q: Samples) -> Information:
    raise TypeError("the Jensen-Shannon divergence of two samples is not estimated: likely.classifier_test bounds it.")


# ------------------------------------------------------------------ sets of variables
def _variables(p: Any, a: Columns, b: Columns) -> tuple[Any, Axes, Axes]:
    """The distribution, counts or samples, and two sets of its axes."""
    p = p if isinstance(p, Counts | Samples) else as_distribution(p)
    sets = []
    for given in (a, b):
        own = (given,) if isinstance(given, int | np.integer) else given
        if isinstance(own, str) or not all(isinstance(x, int | np.integer) and 0 <= x < p.n_axes for x in own):
            raise ValueError(f"variables are numbered from 0 to {p.n_axes - 1}, got {given!r}.")
        sets.append(tuple(int(x) for x in own))
    _check_apart(*sets)
    return p, sets[0], sets[1]


def _check_apart(a: Sequence[int], b: Sequence[int]) -> None:
    if not a or not b or set(a) & set(b):
        raise ValueError(f"two sets of variables are needed that share none, got {list(a)} and {list(b)}.")


def _exact_marginals(p: Distribution, *sets: Axes) -> list[float]:
    return [p.marginal(tuple(sorted(axes))).entropy() for axes in sets]  # type: ignore[misc]


def _two_way(p: Counts, a: Axes, b: Axes) -> np.ndarray:
    """(A, B) shares of the values of two sets of variables."""
    both = p.marginal((*a, *b)).shares
    order = sorted((*a, *b))
    moved = np.transpose(both, [order.index(axis) for axis in (*a, *b)])
    return moved.reshape(int(np.prod(moved.shape[: len(a)])), -1)


def _conditional_spread(p: Counts, a: Axes, b: Axes) -> float:
    """Variance of log p(a | b) over rows."""
    joint = _two_way(p, a, b)
    some = joint > 0
    logs = np.log(joint[some] / np.broadcast_to(joint.sum(axis=0), joint.shape)[some])
    return float(max(0.0, np.sum(joint[some] * logs**2) - np.sum(joint[some] * logs) ** 2))
