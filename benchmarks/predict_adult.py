"""Income of adult's official test rows: log loss and area under the curve; then with half of the input cells hidden.

Our predictors learn from the training rows, and the best by the log loss of the validation rows learns from both. Rows
with holes are validated and predicted as they are: which predictor answers for them is chosen by validation rows with
half of their cells hidden as well. Peers are scikit-learn's logistic regression and boosting; of rows with holes,
boosting as it takes NaN, boosting after cells were imputed, and, beside the bar, boosting that was taught with half of
the cells hidden. Our masked networks are taught with as many cells hidden, so that the last of these is the peer on an
equal footing; the bar's two peers learned from complete rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - makes the next import possible
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import cpu_stopwatch, in_words

TARGET, POSITIVE = "income", ">50K"
LOSS_BAR, AUC_BAR, HIDDEN = 0.285, 0.924, 0.5

Part = tuple[pl.DataFrame, np.ndarray]


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("adult", small=small, n_small=300)
    train, valid, test = (_split(part) for part in (dataset.train, dataset.valid, dataset.test))
    both = pl.concat([train[0], valid[0]]), np.concatenate([train[1], valid[1]])
    schema = likely.Schema.infer(both[0])
    whole = _ours(_models(small, seed, schema), train, valid, both, test)
    hidden_valid, hidden_test = (hidden(part, seed + number) for number, part in enumerate((valid, test)))
    holed = _ours(_models_of_holes(small, seed, schema), train, hidden_valid, both, hidden_test)
    peers = _peers(both, test, hidden_test, seed, 3 if small else 100)
    lines = [_whole_line(whole, peers), _holed_line(holed, peers)]
    return Outcome(lines, {"ours": whole, "ours_half_hidden": holed, "peers": peers})


def hidden(part: Part, seed: int) -> Part:
    """The part with half of its cells hidden at random, besides those that are missing."""
    frame, y = part
    gone = np.random.default_rng(seed).random(frame.shape) < HIDDEN
    cells = [
        pl.when(pl.Series(~gone[:, place])).then(pl.col(name)).otherwise(None).alias(name)
        for place, name in enumerate(frame.columns)
    ]
    return frame.with_columns(cells), y


def _models(small: bool, seed: int, schema: likely.Schema) -> dict[str, Any]:
    own: dict[str, Any] = {"target_kind": "class", "random_state": seed}
    found: dict[str, Any] = {"LinearPredictor": likely.LinearPredictor("map", **own, schema=schema)}
    if not small:
        network: dict[str, Any] = {"hidden": (128, 128), "n_epochs": 10, "missing": "mask"}
        found["NetworkPredictor"] = likely.NetworkPredictor(**network, **own, schema=schema)
        found["JointPredictor(Autoregressive)"] = likely.JointPredictor(likely.Autoregressive(schema=schema), **own)
    return found


def _models_of_holes(small: bool, seed: int, schema: likely.Schema) -> dict[str, Any]:
    own: dict[str, Any] = {"target_kind": "class", "random_state": seed}
    mixture = likely.Mixture(2 if small else 100, n_init=1, schema=schema)
    found: dict[str, Any] = {"JointPredictor(Mixture)": likely.JointPredictor(mixture, **own)}
    if not small:
        network: dict[str, Any] = {"hidden": (256, 256), "n_epochs": 30, "posterior": "ensemble"}
        masked = {"missing": "mask", "hidden_share": HIDDEN, "schema": schema}
        found["NetworkPredictor, masked"] = likely.NetworkPredictor(**network, **own, **masked)
    return found


def _ours(models: dict[str, Any], train: Part, valid: Part, both: Part, test: Part) -> dict[str, Any]:
    """The best by validation, refitted to all rows but the test rows, and how it does there."""
    fitting, trials = cpu_stopwatch(lambda: {name: _judged(model.fit(*train), valid) for name, model in models.items()})
    best = min(trials, key=lambda name: trials[name]["log_loss"])
    seconds, model = cpu_stopwatch(lambda: models[best].fit(*both))
    evidence = model.evidence(*test)
    found = _judged(model, test) | {"kind": evidence.kind, "evidence": evidence.mean, "stderr": evidence.mean_stderr}
    return {"best": best, "validation": trials, "test": found, "seconds": seconds, "validation_seconds": fitting}


def _judged(model: Any, part: Any) -> dict[str, float]:
    return _scores(model.predict_proba(part[0])[:, 1], part[1])


def _scores(probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    truth = y == POSITIVE
    return {"log_loss": float(log_loss(truth, probabilities)), "auc": float(roc_auc_score(truth, probabilities))}


def _peers(both: Part, test: Part, holed: Part, seed: int, n_rounds: int) -> dict[str, dict[str, float]]:
    tables = {name: _pandas(part[0], both[0]) for name, part in (("both", both), ("test", test), ("holed", holed))}
    y, truth = both[1], test[1]
    linear = make_pipeline(_columns_as_numbers(), LogisticRegression(max_iter=1000)).fit(tables["both"], y)
    options: dict[str, Any] = {"max_iter": n_rounds, "random_state": seed}
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", **options).fit(tables["both"], y)
    taught = clone(boosting).fit(_pandas(hidden(both, seed + 2)[0], both[0]), y)
    codes = {name: _codes(table) for name, table in tables.items()}
    kinds = [str(kind) == "category" for kind in tables["both"].dtypes]
    on_codes = HistGradientBoostingClassifier(categorical_features=kinds, **options).fit(codes["both"], y)
    found = {
        "logistic": _scores(linear.predict_proba(tables["test"])[:, 1], truth),
        "boosting": _scores(boosting.predict_proba(tables["test"])[:, 1], truth),
        "boosting, NaN": _scores(boosting.predict_proba(tables["holed"])[:, 1], truth),
        "boosting, taught with holes": _scores(taught.predict_proba(tables["holed"])[:, 1], truth),
    }
    for name, imputer in (
        ("most frequent", SimpleImputer(strategy="most_frequent")),
        ("iterative", IterativeImputer()),
    ):
        filled = imputer.fit(codes["both"]).transform(codes["holed"])
        filled[:, kinds] = np.clip(np.round(filled[:, kinds]), 0, np.nanmax(codes["both"][:, kinds], axis=0))
        found[f"imputed, {name}"] = _scores(on_codes.predict_proba(filled)[:, 1], truth)
    return found


def _columns_as_numbers() -> Any:
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        remainder=StandardScaler(),
    )


def _whole_line(ours: dict[str, Any], peers: dict[str, dict[str, float]]) -> Line:
    found, linear, boosting = ours["test"], peers["logistic"], peers["boosting"]
    return Line(
        what=f"adult, income of the official test rows: log loss of {ours['best']}",
        ours=f"{found['log_loss']:.4f}",
        peer=f"{boosting['log_loss']:.4f} boosting, {linear['log_loss']:.4f} logistic",
        quality=f"AUC {found['auc']:.4f}, boosting {boosting['auc']:.4f}, logistic {linear['auc']:.4f}; "
        f"{found['kind']}, ± {found['stderr']:.4f}; fitted in {in_words(ours['seconds'])} of processor time",
        bar=f"≤ {LOSS_BAR:g}, AUC ≥ {AUC_BAR:g}",
        reached=bool(found["log_loss"] <= LOSS_BAR and found["auc"] >= AUC_BAR),
    )


def _holed_line(ours: dict[str, Any], peers: dict[str, dict[str, float]]) -> Line:
    found = ours["test"]["log_loss"]
    imputed = min(own["log_loss"] for name, own in peers.items() if name.startswith("imputed"))
    takes_holes = peers["boosting, NaN"]["log_loss"]
    return Line(
        what=f"the same with half of the input cells hidden at test time: log loss of {ours['best']}",
        ours=f"{found:.4f}",
        peer=f"{takes_holes:.4f} boosting, {imputed:.4f} imputed first",
        quality=f"AUC {ours['test']['auc']:.4f}; boosting taught with half of the cells hidden "
        f"{peers['boosting, taught with holes']['log_loss']:.4f}",
        bar="< both",
        reached=bool(found < min(takes_holes, imputed)),
    )


def _split(part: pl.DataFrame) -> Part:
    return part.drop(TARGET), np.array(part[TARGET].to_list())


def _pandas(frame: pl.DataFrame, known: pl.DataFrame) -> pd.DataFrame:
    """Words as categories, the same codes for every part; numbers as floats."""
    found = frame.to_pandas()
    for name in frame.columns:
        if known[name].dtype == pl.String:
            words = sorted(known[name].drop_nulls().unique().to_list())
            found[name] = pd.Categorical(found[name].where(found[name].isin(words)), categories=words)
        else:
            found[name] = found[name].astype(np.float64)
    return found


def _codes(table: pd.DataFrame) -> np.ndarray:
    columns = [
        table[name].cat.codes.replace(-1, np.nan) if table[name].dtype == "category" else table[name] for name in table
    ]
    return np.column_stack([np.asarray(column, np.float64) for column in columns])
