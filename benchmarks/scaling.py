"""How cost grows: seconds of a pass against rows, columns and hidden units, for each of the six models.

One thing grows at a time, the other two stay at their middle value. A pass is an iteration of EM or an epoch: the
seconds of a whole fit, divided by how many it made; Independent and ProbabilisticPCA make one. The data are binary
noise, whose values change no cost. The first fit, which compiles, does not count; of the later ones the fastest does.
Drawn by `docs/gallery/scaling.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import likely
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import alone, in_words

MIDDLE = {"rows": 4_000, "columns": 128, "hidden": 32}
LADDERS = {
    "rows": (1_000, 2_000, 4_000, 8_000, 16_000, 32_000),
    "columns": (32, 64, 128, 256, 512, 1024),
    "hidden": (8, 16, 32, 64, 128),
}
N_ROUNDS = 3

# Fixed work for each model. In `Independent` nothing is hidden.
MODELS: dict[str, dict[str, Any]] = {
    "Independent": {},
    "Mixture": {"n_init": 1, "max_iter": 20, "tol": 0.0},
    "ProbabilisticPCA": {},
    "FactorAnalysis": {"max_iter": 20, "tol": 0.0},
    "RBM": {"n_epochs": 5, "batch_size": 100},
    "VAE": {"n_epochs": 5, "batch_size": 100},
}


def run(*, small: bool, seed: int) -> Outcome:
    middle = {"rows": 100, "columns": 8, "hidden": 2} if small else MIDDLE
    ladders = {axis: (size,) for axis, size in middle.items()} if small else LADDERS  # compiles once for each model
    curves = {
        model: {
            axis: _curve(model, axis, ladder, middle, small, seed)
            for axis, ladder in ladders.items()
            if _has(model, axis)
        }
        for model in MODELS
    }
    return Outcome([_line(model, curve) for model, curve in curves.items()], {"middle": middle, "curves": curves})


def _has(model: str, axis: str) -> bool:
    return axis != "hidden" or model != "Independent"


def _curve(model: str, axis: str, ladder, middle: dict[str, int], small: bool, seed: int) -> dict[str, Any]:
    points = [_seconds(model, middle | {axis: size}, small, seed) for size in ladder]
    print(f"  {model} against {axis}: {', '.join(in_words(s) for s in points)}", flush=True)
    return {"sizes": list(ladder), "seconds": points, "slope": _slope(ladder, points)}


def _seconds(model: str, sizes: dict[str, int], small: bool, seed: int) -> float:
    rows = np.random.RandomState(seed).rand(sizes["rows"], sizes["columns"]) < 0.3
    fitted = build(model, sizes["hidden"], seed, likely.Schema.binary(sizes["columns"]))
    timing = alone(lambda: fitted.fit(rows.astype(np.float32)), n_rounds=1 if small else N_ROUNDS)
    return min(timing.seconds) / n_passes(fitted)


def n_passes(fitted: Any) -> int:
    """Epochs or iterations that a fit made."""
    epochs = fitted.get_params().get("n_epochs")
    return epochs if epochs is not None else getattr(fitted, "n_iter_", 1)


def build(model: str, n_hidden: int, seed: int, schema: likely.Schema) -> Any:
    """A model of a size: hidden units are components, latents, and the width of a VAE's one hidden layer times 4."""
    sized: dict[str, Any] = {} if model == "Independent" else {"n_components": n_hidden}
    if model == "VAE":
        sized["hidden"] = (4 * n_hidden,)
    return getattr(likely, model)(**MODELS[model], **sized, schema=schema, random_state=seed)


def _slope(sizes, seconds) -> float:
    """Exponent with which seconds grow over the upper half of the ladder, where fixed costs no longer hide it."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0]) if len(sizes) - half > 1 else 0.0


def _line(model: str, curves: dict[str, Any]) -> Line:
    slopes = ", ".join(f"{axis}^{curve['slope']:.2f}" for axis, curve in curves.items())
    largest = curves["rows"]
    return Line(
        what=f"{model}, a pass",
        ours=in_words(largest["seconds"][-1]),
        quality=f"at {largest['sizes'][-1]:,} rows; grows as {slopes}",
    )
