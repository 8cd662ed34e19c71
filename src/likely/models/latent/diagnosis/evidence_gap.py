"""How far a decoder's evidence is from the truth, and why.

`annealed_evidence` gives a tighter lower bound than importance sampling. `bidirectional_gap` says how tight, on rows of
the model's own, for which an exact sample of p(z | x) is known (Grosse, Ancha and Roy, 2016). `evidence_gap` splits
what the evidence lower bound loses into what the family of q cannot express and what the recognition network does not
find (Cremer, Li and Duvenaud, 2018). Nothing here is exact: each number has a Monte Carlo error beside it, from
replicates, which all rows share. Gaps that the same noise is behind are taken replicate by replicate.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from likely.contract.effort import EvidenceWarning, check_budget, evidence_within
from likely.contract.evidence import Evidence
from likely.contract.model import InStandardUnits, Model
from likely.models.latent.diagnosis.annealed_latents import ROWS_AT_ONCE, Effort, Start, anneal, anneal_back, summed
from likely.objectives.elbo import antithetic_noise, elbo_of, refine_answer
from likely.runtime import by_blocks, float_dtype

# Nats of error that any gap may have: they change a probability by a tenth, and a gap of nothing at all is to give no
# warning however long it is measured.
NEGLIGIBLE = 0.1


def annealed_evidence(
    model: Model,
    X: Any,
    *,
    n_temperatures: int = 200,
    n_chains: int = 16,
    n_leapfrog: int = 10,
    start: Start = "posterior",
    random_state: int | None = None,
    budget: int | float | None = None,
) -> Evidence:
    """Evidence of a decoder by annealing over its latents: a lower bound that rises to the truth with temperatures.

    Parameters
    ----------
    model : fitted, with a recognition network: VAE, DeepLatentGaussian.
    X : (n_rows, n_columns) rows; NaN cells are unobserved.
    n_temperatures, n_chains, n_leapfrog : steps of the path, chains a row, gradients a step.
    start : "posterior", from q(z | x), or "prior".
    random_state : seed; None takes the model's own.
    budget : temperatures in place of `n_temperatures`, a whole number; or seconds, a float, for which their number is
        found.

    Examples
    --------
    >>> import likely, numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(100, 1)) @ np.ones((1, 3)) + np.eye(100, 3)
    >>> model = likely.VAE(1, hidden=(), n_epochs=5, random_state=0).fit(rows)
    >>> evidence = annealed_evidence(model, rows[:20], n_temperatures=20, n_chains=8)
    >>> evidence.kind, evidence.method
    ('lower', 'annealing from the posterior, 20 temperatures, 8 chains, 10 leapfrog steps')
    """
    check_budget(budget)
    effort = _effort(n_temperatures, n_chains, n_leapfrog)
    inside = InStandardUnits(model)
    annealing = _Annealing(_decoder(model), start, effort)
    encoded, rows = inside.read(X)
    evidence, _ = evidence_within(annealing, rows, inside.key("evidence", random_state), budget)
    return inside.finished(evidence, encoded)


@dataclass
class _Annealing:
    """Annealing as something that a budget can buy more or less of: see `likely.contract.effort`."""

    module: Any
    start: Start
    effort: Effort
    _effort = "n_temperatures"

    @property
    def n_temperatures(self) -> int:
        return self.effort.n_temperatures

    @n_temperatures.setter
    def n_temperatures(self, number: int) -> None:
        self.effort = self.effort._replace(n_temperatures=number)

    def _evidence(self, rows: np.ndarray, key: jax.Array) -> Evidence:
        run = partial(anneal, key, self.module, start=self.start, effort=self.effort)
        values, replicates = summed(by_blocks(run, rows, size=ROWS_AT_ONCE))
        return Evidence.lower_bound(values, replicates, method=f"annealing from the {self.start}, {self.effort}")


@dataclass(frozen=True)
class BidirectionalGap:
    """Evidence of a model's own rows from below and from above, each by annealing; both hold on average.

    lower, upper : (n_rows,) in nats, standard units. method : for people.
    lower_replicates, upper_replicates : (n_rows, n_replicates) versions of them from groups of chains.
    """

    lower: np.ndarray
    upper: np.ndarray
    method: str
    lower_replicates: np.ndarray
    upper_replicates: np.ndarray

    @property
    def mean(self) -> float:
        """Mean of upper - lower: what annealing of this effort misses at most, on average."""
        return float((self.upper - self.lower).mean())

    @property
    def stderr(self) -> float:
        """Standard error of `mean`: of the rows that were drawn, and of the chains, whose noise all rows share."""
        over_rows = float((self.upper - self.lower).std(ddof=1) / np.sqrt(len(self.lower)))
        return math.hypot(over_rows, self.monte_carlo_stderr)

    @property
    def monte_carlo_stderr(self) -> float:
        """The chains' part of `stderr`."""
        return math.hypot(_mean_error(self.lower_replicates), _mean_error(self.upper_replicates))

    def __repr__(self) -> str:
        return (
            f"BidirectionalGap({self.mean:.3f} ± {self.stderr:.3f} nats on {len(self.lower)} own rows, estimated by "
            f"{self.method})"
        )


def bidirectional_gap(
    model: Model,
    n_rows: int = 100,
    *,
    n_temperatures: int = 200,
    n_chains: int = 16,
    n_leapfrog: int = 10,
    random_state: int | None = None,
    budget: int | float | None = None,
) -> BidirectionalGap:
    """Lower and upper bounds on the evidence of rows that the model itself drew.

    Their latents are known, and are exact samples of p(z | x): from them chains go back along the path from the prior.
    If the data are like the model's rows, `annealed_evidence` from the prior is that close to the truth.

    Parameters
    ----------
    model : fitted, with a recognition network: VAE, DeepLatentGaussian.
    n_rows : that the model draws.
    The others are those of `annealed_evidence`; of a budget in seconds each direction gets half.

    Warns
    -----
    EvidenceWarning : the error is larger than the gap, and not negligible; it says what to raise.
    """
    check_budget(budget)
    effort = _effort(n_temperatures, n_chains, n_leapfrog)
    module = _decoder(model)
    if n_rows < 2:
        raise ValueError(f"`n_rows` must be at least 2, got {n_rows}: an error needs two.")
    draw, forth, back = jax.random.split(InStandardUnits(model).key("sample", random_state), 3)
    x, z = (np.asarray(part) for part in _own_rows(draw, module, n_rows))
    half = budget / 2 if isinstance(budget, float) else budget
    forward, found = evidence_within(_Annealing(module, "prior", effort), x, forth, half)
    effort = effort._replace(n_temperatures=found or n_temperatures)
    # Rows and latents go side by side, so that both are cut into the same blocks.
    both = partial(_back, back, module, d=x.shape[1], effort=effort)
    reverse, replicates = summed(by_blocks(both, np.concatenate([x, z], axis=1), size=ROWS_AT_ONCE))
    method = f"annealing from the prior, {effort}"
    gap = BidirectionalGap(forward.values, -reverse, method, np.asarray(forward.replicates), -replicates)
    raised = ("n_chains", n_chains) if gap.monte_carlo_stderr > gap.stderr / 2**0.5 else ("n_rows", n_rows)
    _warn_if_lost("bidirectional", gap.mean, gap.stderr, *raised)
    return gap


@dataclass(frozen=True)
class EvidenceGap:
    """log p(x) - ELBO of each row, split; nats. All of it rests on the annealed log p(x), itself a lower bound.

    elbo : of the recognition network's q. best : of the best q of its family that was found for the row. evidence :
    annealed. All three are (n_rows,) estimates.
    elbo_replicates, best_replicates : (n_rows, n_pairs) the bounds by one pair of opposite latents each, the same
    pairs for both. evidence_replicates : (n_rows, n_replicates) from groups of chains. method : for people.
    """

    elbo: np.ndarray
    best: np.ndarray
    evidence: np.ndarray
    elbo_replicates: np.ndarray
    best_replicates: np.ndarray
    evidence_replicates: np.ndarray
    method: str

    @property
    def approximation(self) -> np.ndarray:
        """What no q of the family could express."""
        return self.evidence - self.best

    @property
    def amortisation(self) -> np.ndarray:
        """What a better recognition network would gain; may be below 0 by its error."""
        return self.best - self.elbo

    @property
    def stderr(self) -> dict[str, np.ndarray]:
        """(n_rows,) Monte Carlo errors of "elbo", "best", "evidence", "approximation", "amortisation" and "total"."""
        return {name: _combined(parts, axis=None) for name, parts in self._sources().items()}

    @property
    def mean_stderr(self) -> dict[str, float]:
        """Monte Carlo errors of the means over these rows, which share their noise; names as in `stderr`."""
        return {name: float(_combined(parts, axis=0)) for name, parts in self._sources().items()}

    def _sources(self) -> dict[str, list[np.ndarray]]:
        """Replicates behind each number; several where their noises are independent of each other."""
        elbo, best, evidence = self.elbo_replicates, self.best_replicates, self.evidence_replicates
        return {
            "elbo": [elbo],
            "best": [best],
            "evidence": [evidence],
            "approximation": [evidence, best],
            "amortisation": [best - elbo],
            "total": [evidence, elbo],
        }

    def __repr__(self) -> str:
        error = self.mean_stderr
        means = {"approximation": self.approximation.mean(), "amortisation": self.amortisation.mean()}
        parts = " + ".join(f"{name} {mean:.3f} ± {error[name]:.3f}" for name, mean in means.items())
        total = (self.evidence - self.elbo).mean()
        return (
            f"EvidenceGap({total:.3f} ± {error['total']:.3f} nats = {parts}, {len(self.elbo)} rows, estimated by "
            f"{self.method})"
        )


def evidence_gap(
    model: Model,
    X: Any,
    *,
    n_refine: int = 300,
    n_samples: int = 64,
    n_temperatures: int = 200,
    n_chains: int = 16,
    n_leapfrog: int = 10,
    random_state: int | None = None,
    budget: int | float | None = None,
) -> EvidenceGap:
    """Split log p(x) - ELBO into approximation and amortisation, by fitting q to each row by itself.

    Parameters
    ----------
    n_refine : gradient steps that improve each row's q, from the recognition network's answer on.
    n_samples : latents behind each bound, at least 4. The steps learn on other samples than those that judge them.
    The others are those of `annealed_evidence`; a budget goes to the annealing.

    Warns
    -----
    EvidenceWarning : the error of a gap is larger than the gap, and not negligible; it says what to raise.
    """
    if n_samples < 4:
        raise ValueError(f"`n_samples` must be at least 4, got {n_samples}: an error needs two pairs of latents.")
    module = _decoder(model)
    encoded, rows = InStandardUnits(model).read(X)
    key = InStandardUnits(model).key("evidence", random_state)
    bounds = partial(_bounds, key, module, n_refine=n_refine, n_samples=n_samples + n_samples % 2)
    shift = model.cells_.log_weight(encoded)[:, None]
    elbo, best = (np.asarray(pairs, np.float64) + shift for pairs in by_blocks(bounds, rows, size=ROWS_AT_ONCE))
    annealed = annealed_evidence(
        model,
        X,
        n_temperatures=n_temperatures,
        n_chains=n_chains,
        n_leapfrog=n_leapfrog,
        random_state=random_state,
        budget=budget,
    )
    method = f"{annealed.method}; bounds by {n_samples + n_samples % 2} latents, {n_refine} steps"
    values = (elbo.mean(axis=1), best.mean(axis=1), annealed.values)
    gap = EvidenceGap(*values, elbo, best, np.asarray(annealed.replicates), method)
    error = gap.mean_stderr
    by_chains = error["evidence"] > error["best"]
    raised = ("n_chains", n_chains) if by_chains else ("n_samples", n_samples)
    _warn_if_lost("approximation", float(gap.approximation.mean()), error["approximation"], *raised)
    _warn_if_lost("amortisation", float(gap.amortisation.mean()), error["amortisation"], "n_samples", n_samples)
    return gap


def _mean_error(replicates: np.ndarray) -> float:
    """Standard error of the mean over rows of what replicates (n_rows, r) are versions of."""
    return float(_combined([replicates], axis=0))


def _combined(parts: list[np.ndarray], axis: int | None) -> Any:
    """Standard errors from independent sets of replicates (n_rows, r), of each row, or of the rows' mean (axis 0)."""
    parts = [part if axis is None else part.mean(axis=axis) for part in parts]
    return np.sqrt(sum(part.var(axis=-1, ddof=1) / part.shape[-1] for part in parts))


def _warn_if_lost(name: str, gap: float, error: float, setting: str, value: int) -> None:
    """Warn when a gap is lost in its own error, saying what to raise and how far."""
    if not error > max(abs(gap), NEGLIGIBLE):
        return
    # The error falls with the root of the number of draws.
    enough = math.ceil(value * (error / max(abs(gap), NEGLIGIBLE)) ** 2)
    warnings.warn(
        f"the {name} gap of {gap:.3f} nats has a Monte Carlo error of {error:.3f}: raise `{setting}` from {value} to "
        f"about {enough}.",
        EvidenceWarning,
        stacklevel=3,
    )


@eqx.filter_jit
def _bounds(key, module, x, observed, *, n_refine, n_samples):
    """ELBO (n, n_samples/2) of the network's q and of the better of it and the refined one, by pairs of latents."""
    fitting, judging = jax.random.split(key)
    refined = refine_answer(
        antithetic_noise(fitting, n_samples, module.n_latent, x.dtype), module, x, observed, n_steps=n_refine
    )
    plain = module.recognise(x, observed)

    def by_pairs(key, answer):
        noise = antithetic_noise(key, n_samples, module.n_latent, x.dtype)
        pairs = jnp.stack(jnp.split(noise, 2), axis=1)
        spread = lambda pair: jnp.broadcast_to(pair[None], (len(x), *pair.shape))  # noqa: E731
        return jax.vmap(lambda pair: elbo_of(module, x, observed, answer, spread(pair))[0], out_axes=1)(pairs)

    # The better of the two is chosen on samples of its own: the greater of two estimates would be too great on average.
    choosing = jax.random.fold_in(judging, 1)
    is_better = by_pairs(choosing, refined).mean(axis=1) > by_pairs(choosing, plain).mean(axis=1)
    of_plain, of_refined = by_pairs(judging, plain), by_pairs(judging, refined)
    return of_plain, jnp.where(is_better[:, None], of_refined, of_plain)


@eqx.filter_jit
def _own_rows(key, module, n):
    latent_key, column_key = jax.random.split(key)
    z = module.prior().sample(latent_key, n, module.n_latent, float_dtype())
    return module.sample(column_key, z), z


def _back(key, module, both, observed, *, d, effort):
    return anneal_back(key, module, both[:, :d], None, both[:, d:], effort=effort)


def _decoder(model: Model) -> Any:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    if not hasattr(model.params_, "recognise"):
        raise TypeError(
            f"{type(model).__name__} has no recognition network q(z | x) beside a decoder: give a VAE or a "
            "DeepLatentGaussian."
        )
    return model.params_


def _effort(n_temperatures: int, n_chains: int, n_leapfrog: int) -> Effort:
    effort = Effort(n_temperatures, n_chains, n_leapfrog)
    for name, value in effort._asdict().items():
        least = 2 if name == "n_chains" else 1
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")
    return effort
