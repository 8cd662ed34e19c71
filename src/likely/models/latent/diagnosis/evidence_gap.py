"""How far a decoder's evidence is from the truth, and why.

`annealed_evidence` gives a tighter lower bound than importance sampling. `bidirectional_gap` says how tight, on rows of
the model's own, for which an exact sample of p(z | x) is known (Grosse, Ancha and Roy, 2016). `evidence_gap` splits
what the evidence lower bound loses into what the family of q cannot express and what the recognition network does not
find (Cremer, Li and Duvenaud, 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from likely.contract.evidence import Evidence
from likely.contract.model import InStandardUnits, Model
from likely.models.latent.diagnosis.annealed_latents import ROWS_AT_ONCE, Effort, Start, anneal, anneal_back, summed
from likely.objectives.elbo import antithetic_noise, elbo_of, refine_answer
from likely.runtime import by_blocks, float_dtype


def annealed_evidence(
    model: Model,
    X: Any,
    *,
    n_temperatures: int = 200,
    n_chains: int = 16,
    n_leapfrog: int = 10,
    start: Start = "posterior",
    random_state: int | None = None,
) -> Evidence:
    """Evidence of a decoder by annealing over its latents: a lower bound that rises to the truth with temperatures.

    Parameters
    ----------
    model : fitted, with a recognition network: VAE, DeepLatentGaussian.
    X : (n_rows, n_columns) rows; NaN cells are unobserved.
    n_temperatures, n_chains, n_leapfrog : steps of the path, chains a row, gradients a step.
    start : "posterior", from q(z | x), or "prior".
    random_state : seed; None takes the model's own.

    Examples
    --------
    >>> import likely, numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(100, 1)) @ np.ones((1, 3)) + np.eye(100, 3)
    >>> model = likely.VAE(1, hidden=(), n_epochs=5, random_state=0).fit(rows)
    >>> evidence = annealed_evidence(model, rows[:20], n_temperatures=20, n_chains=8)
    >>> evidence.kind, evidence.method
    ('lower', 'annealing from the posterior, 20 temperatures, 8 chains, 10 leapfrog steps')
    """
    effort = _effort(n_temperatures, n_chains, n_leapfrog)
    module = _decoder(model)
    inside = InStandardUnits(model)
    encoded, rows = inside.read(X)
    run = partial(anneal, inside.key("evidence", random_state), module, start=start, effort=effort)
    values, replicates = summed(by_blocks(run, rows, size=ROWS_AT_ONCE))
    method = f"annealing from the {start}, {effort}"
    return inside.finished(Evidence.lower_bound(values, replicates, method=method), encoded)


@dataclass(frozen=True)
class BidirectionalGap:
    """Evidence of a model's own rows from below and from above, each by annealing; both hold on average.

    lower, upper : (n_rows,) in nats, standard units. method : for people.
    """

    lower: np.ndarray
    upper: np.ndarray
    method: str

    @property
    def mean(self) -> float:
        """Mean of upper - lower: what annealing of this effort misses at most, on average."""
        return float((self.upper - self.lower).mean())

    @property
    def stderr(self) -> float:
        """Standard error of `mean` over the rows."""
        return float((self.upper - self.lower).std(ddof=1) / np.sqrt(len(self.lower)))

    def __repr__(self) -> str:
        return (
            f"BidirectionalGap({self.mean:.3f} ± {self.stderr:.3f} nats on {len(self.lower)} own rows, {self.method})"
        )


def bidirectional_gap(
    model: Model,
    n_rows: int = 100,
    *,
    n_temperatures: int = 200,
    n_chains: int = 16,
    n_leapfrog: int = 10,
    random_state: int | None = None,
) -> BidirectionalGap:
    """Lower and upper bounds on the evidence of rows that the model itself drew.

    Their latents are known, and are exact samples of p(z | x): from them chains go back along the path from the prior.
    If the data are like the model's rows, `annealed_evidence` from the prior is that close to the truth.
    """
    effort = _effort(n_temperatures, n_chains, n_leapfrog)
    module = _decoder(model)
    if n_rows < 2:
        raise ValueError(f"`n_rows` must be at least 2, got {n_rows}: an error needs two.")
    draw, forth, back = jax.random.split(InStandardUnits(model).key("sample", random_state), 3)
    x, z = (np.asarray(part) for part in _own_rows(draw, module, n_rows))
    d = x.shape[1]
    forward = by_blocks(partial(anneal, forth, module, start="prior", effort=effort), x, size=ROWS_AT_ONCE)
    # Rows and latents go side by side, so that both are cut into the same blocks.
    both = partial(_back, back, module, d=d, effort=effort)
    reverse = by_blocks(both, np.concatenate([x, z], axis=1), size=ROWS_AT_ONCE)
    return BidirectionalGap(summed(forward)[0], -summed(reverse)[0], f"annealing from the prior, {effort}")


@dataclass(frozen=True)
class EvidenceGap:
    """log p(x) - ELBO of each row, split; nats. All of it rests on the annealed log p(x), itself a lower bound.

    elbo : of the recognition network's q. best : of the best q of its family that was found for the row. evidence :
    annealed.
    """

    elbo: np.ndarray
    best: np.ndarray
    evidence: np.ndarray

    @property
    def approximation(self) -> np.ndarray:
        """What no q of the family could express."""
        return self.evidence - self.best

    @property
    def amortisation(self) -> np.ndarray:
        """What a better recognition network would gain."""
        return self.best - self.elbo

    def __repr__(self) -> str:
        total = (self.evidence - self.elbo).mean()
        return (
            f"EvidenceGap({total:.3f} nats = approximation {self.approximation.mean():.3f} + amortisation "
            f"{self.amortisation.mean():.3f}, {len(self.elbo)} rows)"
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
) -> EvidenceGap:
    """Split log p(x) - ELBO into approximation and amortisation, by fitting q to each row by itself.

    Parameters
    ----------
    n_refine : gradient steps that improve each row's q, from the recognition network's answer on.
    n_samples : latents behind each bound. The steps learn on other samples than those that judge them.
    The others are those of `annealed_evidence`.
    """
    module = _decoder(model)
    encoded, rows = InStandardUnits(model).read(X)
    key = InStandardUnits(model).key("evidence", random_state)
    bounds = partial(_bounds, key, module, n_refine=n_refine, n_samples=n_samples + n_samples % 2)
    elbo, best = by_blocks(bounds, rows, size=ROWS_AT_ONCE)
    shift = model.scaling_.log_jacobian(~np.isnan(encoded))
    annealed = annealed_evidence(
        model, X, n_temperatures=n_temperatures, n_chains=n_chains, n_leapfrog=n_leapfrog, random_state=random_state
    )
    return EvidenceGap(elbo + shift, best + shift, annealed.values)


@eqx.filter_jit
def _bounds(key, module, x, observed, *, n_refine, n_samples):
    """ELBO (n,) of the network's q and of the refined one, whichever is the better for a row."""
    fitting, judging = jax.random.split(key)
    refined = refine_answer(
        antithetic_noise(fitting, n_samples, module.n_latent, x.dtype), module, x, observed, n_steps=n_refine
    )
    noise = antithetic_noise(judging, n_samples, module.n_latent, x.dtype)
    noise = jnp.broadcast_to(noise[None], (len(x), *noise.shape))
    of = lambda answer: elbo_of(module, x, observed, answer, noise)[0]  # noqa: E731
    plain, better = of(module.recognise(x, observed)), of(refined)
    return plain, jnp.maximum(plain, better)


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
