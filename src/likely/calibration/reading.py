"""What a predictor says of rows: probabilities of classes, or draws of a number; of this library or of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

_ROUNDING = 1e-3  # by which probabilities in float32 of many classes may miss 1


def has_classes(predictor: Any) -> bool:
    """Whether a fitted predictor is of classes."""
    return getattr(predictor, "classes_", None) is not None


def class_probabilities(predictor: Any, X: Any) -> np.ndarray:
    """(n, K) p(class | x) in the order of `classes_`."""
    if not hasattr(predictor, "predict_proba"):
        raise TypeError(
            f"{type(predictor).__name__} gives no probabilities of classes (`predict_proba`): calibrate its scores, "
            "with scikit-learn's CalibratedClassifierCV, or take another classifier."
        )
    return np.asarray(predictor.predict_proba(X), dtype=np.float64)


def target_draws(predictor: Any, X: Any, n_draws: int, random_state: int) -> np.ndarray:
    """(n, m) draws of y given each row."""
    if not hasattr(predictor, "condition"):
        raise TypeError(
            f"{type(predictor).__name__} predicts a number and no distribution of it: take a likely.Predictor, or ask "
            "for intervals by likely.calibration.SplitConformal."
        )
    drawn = np.stack([np.asarray(rows) for rows in predictor.condition(X).sample(n_draws, random_state)])
    if drawn.ndim != 3 or drawn.shape[2] != 1:
        raise ValueError("the calibration of several targets together is not defined: fit a predictor for each.")
    return drawn[:, :, 0].astype(np.float64).T


def codes_of(y: Any, classes: np.ndarray) -> np.ndarray:
    """(n,) the place of each y among the classes."""
    values = np.asarray(y).ravel()
    places = {value: place for place, value in enumerate(np.asarray(classes).tolist())}
    strange = [value for value in values.tolist() if value not in places]
    if strange:
        raise ValueError(f"y has {strange[0]!r}, which is none of the {len(places)} classes: {list(places)[:10]}.")
    return np.array([places[value] for value in values.tolist()], dtype=np.intp)


def check_probabilities(probabilities: Any, codes: np.ndarray) -> np.ndarray:
    """(n, K) probabilities that belong to so many y; a vector is of the second of two classes."""
    p = np.asarray(probabilities, dtype=np.float64)
    p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    if p.ndim != 2 or len(p) != len(codes):
        raise ValueError(f"probabilities must be (n, K) or (n,) for n = {len(codes)} values of y, got shape {p.shape}.")
    if not np.isfinite(p).all() or (p < -_ROUNDING).any() or (np.abs(p.sum(axis=1) - 1) > _ROUNDING).any():
        raise ValueError("probabilities must lie between 0 and 1, and have sum 1 in each row.")
    return np.clip(p, 0, 1)


def events(probabilities: Any, y: Any, classes: Any = None, of: Any = "top") -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of events (n,), and whether each came true (n,), from predictions of classes.

    Parameters
    ----------
    probabilities : (n, K); or (n,) of the second of two classes.
    y : (n,) what came true. classes : their names, in order; None for 0, 1, ...
    of : the class that the event is; "top" for "the most probable class is right", which for two classes given as a
        vector is the second class.
    """
    n_classes = 2 if np.ndim(probabilities) == 1 else np.shape(probabilities)[1]
    names = np.arange(n_classes) if classes is None else np.asarray(classes)
    codes = codes_of(y, names)
    p = check_probabilities(probabilities, codes)
    if of == "top" and np.ndim(probabilities) > 1:
        top = p.argmax(axis=1)
        return p[np.arange(len(p)), top], codes == top
    place = 1 if of == "top" else int(codes_of([of], names)[0])
    return p[:, place], codes == place
