"""California districts, holes as they are: the median value of a house, by the best predictor of validation rows.

The error is the root mean square one of the test rows, in 100,000 dollars; intervals are the predictor's own, beside
split-conformal ones around it, whose scores are those of the validation rows. Readings of the numbers are tried on
single networks, and the best of them by validation becomes an ensemble, which is kept if it is better still. The peer
is scikit-learn's boosting with its defaults.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingRegressor

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import cpu_stopwatch, in_words
from likely.calibration import SplitConformal

TARGET, UNIT = "median_house_value", 1e5
RMSE_BAR, LEVEL, COVERED = 0.46, 0.9, (0.88, 0.92)

Part = tuple[pl.DataFrame, np.ndarray]


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.housing(small=small)
    train, valid, test = (_split(part) for part in (dataset.train, dataset.valid, dataset.test))
    seconds, (name, model, trials) = cpu_stopwatch(lambda: chosen(train, valid, small, seed))
    low, high = (np.ravel(end) / UNIT for end in model.condition(test[0]).interval(LEVEL, random_state=seed))
    covered = float(np.mean((low <= test[1] / UNIT) & (test[1] / UNIT <= high)))
    evidence = model.evidence(*test)
    conformal = SplitConformal(model).calibrate(*valid)
    ends = [end / UNIT for end in conformal.interval(test[0], LEVEL)]
    held = float(np.mean((ends[0] <= test[1] / UNIT) & (test[1] / UNIT <= ends[1])))
    peer = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=seed)
    peer.fit(_pandas(train[0]), train[1])
    errors = {"ours": _rmse(model, test), "boosting": _rmse(peer, (_pandas(test[0]), test[1]))}
    best = {"name": name, "covered": covered, "width": float(np.mean(high - low)), "log_p": evidence.mean}
    best |= {"conformal_covered": held, "conformal_width": float(np.mean(ends[1] - ends[0]))}
    lines = [
        Line(
            what=f"housing, median value: root mean square error of {name}, in 100,000s",
            ours=f"{errors['ours']:.3f}",
            peer=f"{errors['boosting']:.3f} boosting",
            quality=f"validation {trials[name]:.3f}; log p {evidence.mean:.3f}, {evidence.kind}; all that was tried "
            f"took {in_words(seconds)} of processor time",
            bar=f"≤ {RMSE_BAR:g}",
            reached=bool(errors["ours"] <= RMSE_BAR),
        ),
        Line(
            what=f"the same, test rows in their {LEVEL:.0%} intervals",
            ours=f"{covered:.1%}",
            quality=f"mean width {best['width']:.2f}",
            bar=f"{COVERED[0]:.0%} to {COVERED[1]:.0%}",
            reached=bool(COVERED[0] <= covered <= COVERED[1]),
        ),
        Line(
            what="the same in conformal intervals, by the validation rows",
            ours=f"{held:.1%}",
            quality=f"mean width {best['conformal_width']:.2f}",
            bar=f"{COVERED[0]:.0%} to {COVERED[1]:.0%}",
            reached=bool(COVERED[0] <= held <= COVERED[1]),
        ),
    ]
    return Outcome(lines, {"validation": trials, "test": errors, "best": best, "seconds": seconds})


def chosen(train: Part, valid: Part, small: bool, seed: int) -> tuple[str, Any, dict[str, float]]:
    """The best predictor by the validation rows, its name, and the errors of all there."""
    fitted = {name: model.fit(*train, valid=valid) for name, model in _single(small, seed).items()}
    errors = {name: _rmse(model, valid) for name, model in fitted.items()}
    best = min((name for name in errors if name != "linear"), key=lambda name: errors[name])
    several = fitted[best].get_params() | {"posterior": "ensemble", "n_members": 2 if small else 3}
    name = f"an ensemble, {best}"
    fitted[name] = likely.NetworkPredictor(**several).fit(*train, valid=valid)
    errors[name] = _rmse(fitted[name], valid)
    first = min(errors, key=lambda own: errors[own])
    return first, fitted[first], errors


def _single(small: bool, seed: int) -> dict[str, Any]:
    shared: dict[str, Any] = {"target_kind": "number", "random_state": seed}
    size: dict[str, Any] = {"hidden": (8,), "n_epochs": 2} if small else {"hidden": (128, 128), "n_epochs": 25}
    readings = {"periodic": {"n_parts": 32, "embedding_size": 16}, "piecewise": {"n_parts": 64, "embedding_size": 16}}
    networks = {
        f"network, {embedding}": likely.NetworkPredictor(**size, **shared, embedding=embedding, **options)
        for embedding, options in list(readings.items())[: 1 if small else None]
    }
    return {"linear": likely.LinearPredictor(**shared)} | networks


def _rmse(model: Any, part: Any) -> float:
    return float(np.sqrt(np.mean((np.asarray(model.predict(part[0])) - part[1]) ** 2)) / UNIT)


def _split(part: pl.DataFrame) -> Part:
    return part.drop(TARGET), part[TARGET].to_numpy().astype(np.float64)


def _pandas(frame: pl.DataFrame) -> Any:
    return frame.with_columns(pl.col("ocean_proximity").cast(pl.Categorical)).to_pandas()
