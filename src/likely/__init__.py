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

from likely.storage import registry

__version__ = "0.1.0"

# Everything is imported when it is first used: JAX alone takes most of a second.
_HOMES = {
    "Column": "likely.schema",
    "Schema": "likely.schema",
    "SchemaError": "likely.schema",
    "SequenceModel": "likely.contract.sequence_model",
    "Evidence": "likely.contract.evidence",
    "EvidenceWarning": "likely.contract.effort",
    "IncomparableError": "likely.contract.evidence",
    "FileError": "likely.storage.files",
    "Model": "likely.contract.model",
    "Predictor": "likely.contract.predictor",
    "SequencePredictor": "likely.contract.sequence_predictor",
    "Estimator": "likely.contract.estimator",
    "load": "likely.contract.estimator",
    "Conditional": "likely.contract.conditional",
    "Checkpoint": "likely.training",
    "TrainingError": "likely.training",
    "Corpus": "likely.datasets",
    "DataError": "likely.datasets",
    "Leaderboard": "likely.leaderboard",
    "compare": "likely.leaderboard",
    "hopfield_tour": "likely.models.energy.pairwise.tour",
    "annealed_evidence": "likely.models.latent.diagnosis.evidence_gap",
    "bidirectional_gap": "likely.models.latent.diagnosis.evidence_gap",
    "evidence_gap": "likely.models.latent.diagnosis.evidence_gap",
    "traverse": "likely.models.latent.diagnosis.walks",
    "interpolate": "likely.models.latent.diagnosis.walks",
    "manifold": "likely.models.latent.diagnosis.walks",
    "mutual_information_gap": "likely.models.latent.diagnosis.disentanglement",
    "beta_vae_score": "likely.models.latent.diagnosis.disentanglement",
    "classifier_test": "likely.information.two_sample",
    "mmd_test": "likely.information.two_sample",
    "gradient_flow": "likely.models.language.recurrent.gradient_flow",
    "pretrain": "likely.models.prediction.pretrained.pretraining",
    "Stack": "likely.models.prediction.pretrained.pretraining",
} | {entry.class_name: entry.module for entry in registry.ENTRIES}

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
