"""Checks that tests and their negative controls share: each raises AssertionError on a wrong sampler or estimate."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams
from tests.models.energy.harmonium import brute_force

ALPHA = 1e-5  # false-alarm rate of one check; the suite has dozens


def check_frequencies(counts: np.ndarray, probabilities: np.ndarray) -> None:
    """Chi-square of counts against exact probabilities; cells that expect fewer than 5 are joined."""
    expected = probabilities / probabilities.sum() * counts.sum()
    rare = expected < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    assert counts[~kept].sum() == 0, "something impossible happened"
    assert stats.chisquare(counts[kept], expected[kept]).pvalue > ALPHA


def check_mean(runs: np.ndarray, exact: np.ndarray) -> None:
    """Independent runs (n, ...) of an estimate average to the exact values, within the error that their spread tells.

    The runs are few, so the tail is Student's; what does not vary must agree to rounding.
    """
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    off = np.abs(runs.mean(axis=0) - np.asarray(exact))
    limit = stats.t.isf(ALPHA / 2 / off.size, len(runs) - 1)
    assert (off <= limit * error + 1e-9).all(), f"{(off / np.maximum(error, 1e-9)).max():.1f} standard errors off"


def check_leaves_joint_unchanged(
    step: Callable[[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
    params: RBMParams,
    columns: Columns,
    seed: int,
    n: int = 100_000,
) -> None:
    """A step (key, x, h) -> (x, h) from exact samples of p(x, h) must give samples of p(x, h)."""
    rng = np.random.default_rng(seed)
    rows = brute_force.all_rows(columns)
    hidden = brute_force.hidden_states(params.n_hidden)
    logs = brute_force.log_joint(params, rows, columns)
    joint = np.exp(logs - logs.max())
    joint /= joint.sum()
    drawn = rng.choice(joint.size, size=n, p=joint.ravel())
    start = jnp.asarray(rows[drawn // len(hidden)]), jnp.asarray(hidden[drawn % len(hidden)])
    x, h = (np.asarray(a) for a in step(jax.random.key(seed), *start))
    after = brute_force.row_number(x, rows) * len(hidden) + brute_force.row_number(h, hidden)
    check_frequencies(np.bincount(after, minlength=joint.size), joint.ravel())


# Ten thousand temperatures take longer than compiling with all optimisations, which tests otherwise leave out.
OPTIMISED = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    "xla_cpu_use_fusion_emitters": True,
}


def worth_optimising(n_temperatures: int) -> dict | None:
    """The compiler's options for so many temperatures: a few are over before all optimisations are."""
    return OPTIMISED if n_temperatures >= 10_000 else None


def check_ladder(estimate: Callable[[int], float], exact: float) -> None:
    """An estimate of log Z that gets better as it should with the number of temperatures."""
    for n_temperatures, tolerance in ((100, 0.5), (1_000, 0.05), (10_000, 0.005)):
        error = abs(estimate(n_temperatures) - exact)
        assert error < tolerance, f"{error:.4f} nats off with {n_temperatures} temperatures"
