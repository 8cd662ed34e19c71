"""Convolution directly, as patches and a product, and by Fourier transforms: which is fastest where, forward and back.

Processor time of a compiled gradient in pictures and kernel, the least of several rounds in turns, over a grid of
sides, channels, kernels and strides. The rule in `likely.nets.fastest` is judged by the time that it takes over the
whole grid beside the time of whoever would always choose right.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.outcome import Line, Outcome
from benchmarks.timing import cpu_stopwatch
from likely.nets import correlate, fastest

METHODS = ("direct", "patches", "fft")
PICTURES = ((32, 28, 1, 16), (32, 28, 16, 16), (32, 14, 32, 32), (16, 32, 3, 16), (4, 64, 8, 8))  # n, side, c, o
KERNELS = ((1, 1), (3, 1), (5, 1), (7, 1), (11, 1), (4, 2), (6, 2), (10, 2))  # size, stride
REGRET_BAR = 1.25


def run(*, small: bool, seed: int) -> Outcome:
    cases = [((2, 6, 2, 2), (3, 1))] if small else list(itertools.product(PICTURES, KERNELS))
    figures = [_measure(*case, seed, 1 if small else 5) for case in cases]
    by_rule = sum(own["seconds"][own["rule"]] for own in figures)
    at_best = sum(min(own["seconds"].values()) for own in figures)
    right = sum(own["seconds"][own["rule"]] <= 1.1 * min(own["seconds"].values()) for own in figures)
    worst = max(own["seconds"][own["rule"]] / min(own["seconds"].values()) for own in figures)
    rule = Line(
        what=f"Convolution by the rule, {len(figures)} shapes, processor time of a gradient",
        ours=f"{by_rule:.3g} s",
        peer=f"{at_best:.3g} s (always the fastest)",
        ratio=at_best / by_rule,
        quality=f"within 10% of the fastest on {right} of {len(figures)}, at worst {worst:.2f}× its time",
        bar=f"≥ {1 / REGRET_BAR:.2g}×",
        reached=bool(by_rule <= REGRET_BAR * at_best),
    )
    always = [
        Line(what=f"the same, always {method}", ours=f"{sum(own['seconds'][method] for own in figures):.3g} s")
        for method in METHODS
    ]
    apart = max(own["apart"] for own in figures)
    agree = Line(
        what="the same, largest difference of outputs and gradients",
        ours=f"{apart:.1e} of the largest number",
        bar="≤ 1e-05",
        reached=bool(apart <= 1e-5),
    )
    return Outcome([rule, *always, agree], {"shapes": figures})


def _measure(picture: tuple[int, ...], kernel: tuple[int, int], seed: int, n_rounds: int) -> dict[str, Any]:
    """Processor time of each way, and how far their results are apart."""
    (n, side, c, o), (size, stride) = picture, kernel
    random = np.random.default_rng(seed)
    x = jnp.asarray(random.normal(size=(n, side, side, c)), jnp.float32)
    weights = jnp.asarray(random.normal(size=(size, size, c, o)) / size, jnp.float32)
    programs = {method: _program(method, stride) for method in METHODS}
    results = {method: jax.block_until_ready(program(x, weights)) for method, program in programs.items()}
    seconds = dict.fromkeys(METHODS, np.inf)
    for _ in range(n_rounds):
        for method, program in programs.items():
            taken, _ = cpu_stopwatch(lambda program=program: jax.block_until_ready(program(x, weights)))
            seconds[method] = min(seconds[method], taken)
    return {
        "pictures": picture,
        "kernel": kernel,
        "seconds": seconds,
        "fastest": min(seconds, key=seconds.get),  # type: ignore[arg-type]
        "rule": fastest(weights.shape, stride),
        "apart": max(_apart(results[method], results["direct"]) for method in METHODS),
    }


def _program(method: str, stride: int) -> Any:
    def loss(x: jax.Array, kernel: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = correlate(x, kernel, stride=stride, method=method)
        return (y**2).sum() / 2, y

    return jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True))


def _apart(a: Any, b: Any) -> float:
    """The largest difference of any two arrays beside the largest number in them."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(jnp.abs(u - v).max() / jnp.abs(v).max()) for u, v in pairs)
