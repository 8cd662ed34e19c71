"""likely: learn a probability distribution from data, and say honestly how good it is.

>>> import likely
>>> digits = likely.datasets.load("digits")
>>> model = likely.Mixture(n_components=10, random_state=0).fit(digits.train)
>>> model.evidence(digits.test).kind
'exact'
"""

from __future__ import annotations

import importlib
from typing import Any

from likely import registry

__version__ = "0.1.0"

# Everything is imported when it is first used: JAX alone takes most of a second.
_HOMES = {
    "Column": "likely.schema",
    "Schema": "likely.schema",
    "SchemaError": "likely.schema",
    "SequenceModel": "likely.sequence_model",
    "Evidence": "likely.evidence",
    "EvidenceWarning": "likely.budget",
    "IncomparableError": "likely.evidence",
    "FileError": "likely.files",
    "Model": "likely.model",
    "load": "likely.model",
    "Conditional": "likely.conditional",
    "Checkpoint": "likely.training",
    "TrainingError": "likely.training",
    "Corpus": "likely.datasets",
    "DataError": "likely.datasets",
    "Leaderboard": "likely.leaderboard",
    "compare": "likely.leaderboard",
    "hopfield_tour": "likely.models.energy.hopfield_tour",
    "annealed_evidence": "likely.models.latent.gap",
    "bidirectional_gap": "likely.models.latent.gap",
    "evidence_gap": "likely.models.latent.gap",
    "traverse": "likely.models.latent.exploring",
    "interpolate": "likely.models.latent.exploring",
    "manifold": "likely.models.latent.exploring",
    "mutual_information_gap": "likely.models.latent.disentanglement",
    "beta_vae_score": "likely.models.latent.disentanglement",
    "classifier_test": "likely.montecarlo.two_sample",
    "mmd_test": "likely.montecarlo.two_sample",
    "gradient_flow": "likely.models.language.gradient_flow",
    "pretrain": "likely.models.prediction.pretraining",
    "Stack": "likely.models.prediction.pretraining",
    "RBMClassifier": "likely.models.energy.labelled",
} | {entry.class_name: entry.module for entry in (*registry.listed(), *registry.PREDICTORS)}

_PACKAGES = ("columns", "datasets", "gradients", "montecarlo", "nets", "objectives", "training")

__all__ = sorted([*_HOMES, *_PACKAGES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name in _PACKAGES:
        value = importlib.import_module(f"likely.{name}")
    else:
        raise AttributeError(f"module 'likely' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
