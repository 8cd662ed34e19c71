"""Six binary data sets of debd, and silhouettes: each model's best of a small grid by validation, and published ones.

Each setting is fitted on the training rows, with the validation rows for early stopping where a model has it. The
setting with the best validation evidence is the one whose test evidence is reported; the test rows choose nothing. An
estimate or bound is ranked by its lower limit. A stack mixes the models that come near the best of a set, each with its
best setting; the validation rows give it the members' weights. ProbabilisticPCA and FactorAnalysis read binary columns
as real numbers and give densities, which cannot be compared with probabilities; they are not run. Writes
`docs/debd.md`.

`DEBD_MODELS=Circuit,TreeMixture` fits these alone, `DEBD_SETS=dna` on these sets alone, and keeps what the record has
of the others: evidence does not depend on the hour, as seconds do.
"""

from __future__ import annotations

from typing import Any

import likely
from benchmarks import data, recipes
from benchmarks.debd_page import DOCUMENT, page
from benchmarks.outcome import Line, Outcome, asked, kept
from benchmarks.timing import in_words, stopwatch
from likely.storage.files import write_atomically

BARS = {"nltcs": -6.00, "plants": -12.5, "jester": -51.3, "accidents": -26.7, "dna": -79.1, "mushrooms": -9.6}


def run(*, small: bool, seed: int) -> Outcome:
    names = list(recipes.DEBD_SETS)[: 1 if small else None]
    sets = {name: _one_set(name, small, seed) for name in names}
    sets = {name: models for name, models in sets.items() if models}
    lines = [_line(name, models) for name, models in sets.items()]
    if not small:
        write_atomically(DOCUMENT, page(sets, BARS).encode())
    return Outcome(lines, {"sets": sets})


def _one_set(name: str, small: bool, seed: int) -> dict[str, dict[str, Any]]:
    record = {} if small else kept("debd", "DEBD_MODELS", "DEBD_SETS").get("sets", {}).get(name, {})
    wanted = (
        asked("DEBD_MODELS", (*recipes.DEBD_GRIDS, "Stack")) if name in asked("DEBD_SETS", recipes.DEBD_SETS) else ()
    )
    if not wanted:
        return record
    dataset = data.load(recipes.DEBD_SETS[name], small=small)
    grids = {model: recipes.debd_grid(model, name, len(dataset.train)) for model in recipes.DEBD_GRIDS}
    found = {model: _best(model, grids[model], dataset, small, seed) for model in wanted if grids.get(model)}
    models = {model: found.get(model) or record[model] for model in grids if model in found or model in record}
    if "Stack" in wanted and name in recipes.DEBD_STACKED:
        models["Stack"] = _stacked(models, dataset, small, seed)
    elif "Stack" in record:
        models["Stack"] = record["Stack"]
    for one in models.values():
        one.pop("fitted", None)
    return models


def _best(model: str, grid: list[dict[str, Any]], dataset, small: bool, seed: int) -> dict[str, Any]:
    """The setting that is best by validation, with its figures and the whole grid's."""
    tried = []
    for setting in grid[:1] if small else grid:
        tried.append(_try(model, setting | (_tiny(setting) if small else {}), dataset, seed))
        print(f"  {dataset.name} {model} {setting}: valid {tried[-1]['valid']:.3f}", flush=True)
    best = max(tried, key=lambda one: one["valid"])
    # The grid is small and models are as well: the best one is at hand for a stack.
    return best | {"grid": [{key: one[key] for key in ("setting", "valid", "seconds")} for one in tried]}


def _stacked(models: dict[str, dict[str, Any]], dataset, small: bool, seed: int) -> dict[str, Any]:
    """The mixture of the models that come near the best, fitted again with their setting where the record has them."""
    top = max(one["valid"] for one in models.values())
    near = [model for model, one in models.items() if one["valid"] >= top - recipes.DEBD_STACKED_WITHIN]
    members = []
    for model in near:
        if "fitted" not in models[model]:
            models[model]["fitted"] = _try(model, models[model]["setting"], dataset, seed)["fitted"]
        members.append(models[model]["fitted"])
    seconds, stack = stopwatch(lambda: likely.Stack(members, random_state=seed).fit(dataset.valid))
    setting = {model: round(weight, 3) for model, weight in zip(near, stack.weights_, strict=True)}
    seconds += sum(models[model]["seconds"] for model in near)
    found = {"setting": setting} | _judged(stack, dataset) | {"seconds": seconds}
    print(f"  {dataset.name} Stack {setting}: valid {found['valid']:.3f}", flush=True)
    return found | {"grid": []}


def _tiny(setting: dict[str, Any]) -> dict[str, Any]:
    tiny = {
        "n_components": 3,
        "n_epochs": 2,
        "n_importance": 10,
        "n_temperatures": 20,
        "hidden": (8,),
        "n_init": 1,
        "layers": (2,),
        "n_states": 2,
        "n_trees": 1,
    }
    return {name: value for name, value in tiny.items() if name in setting}


def _try(model: str, setting: dict[str, Any], dataset, seed: int) -> dict[str, Any]:
    fitted = getattr(likely, model)(**setting, schema=dataset.schema, random_state=seed)
    seconds, _ = stopwatch(lambda: fitted.fit(dataset.train, valid=dataset.valid))
    chosen = {
        name: getattr(fitted, f"{name}_") for name in ("n_states", "n_trees", "pseudo_count") if model == "Circuit"
    }
    return {"setting": setting, "chosen": chosen} | _judged(fitted, dataset) | {"seconds": seconds, "fitted": fitted}


def _judged(fitted: Any, dataset) -> dict[str, Any]:
    test = fitted.evidence(dataset.test)
    return {
        "valid": float(fitted.evidence(dataset.valid).lower.mean()),
        "test": float(test.mean),
        "test_lower": float(test.lower.mean()),
        "kind": test.kind,
    }


def _line(name: str, models: dict[str, dict[str, Any]]) -> Line:
    best = max(models, key=lambda model: models[model]["valid"])
    found, bar = models[best], BARS.get(name)
    sure = found["test_lower"]
    return Line(
        what=f"{name}: best by validation, {best}",
        ours=f"{sure:.2f} nats",
        quality=f"{'exact' if found['kind'] == 'exact' else 'its lower limit'}, fitted in {in_words(found['seconds'])}",
        bar="" if bar is None else f"≥ {bar:g}",
        reached=None if bar is None else bool(sure >= bar),
    )
