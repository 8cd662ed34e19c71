"""likely: learn a probability distribution from data, and say honestly how good it is.

>>> import likely
>>> digits = likely.datasets.load("digits")
>>> model = likely.Mixture(n_components=10, random_state=0).fit(digits.train)
>>> model.evidence(digits.test).kind
'exact'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from likely.storage import registry

if TYPE_CHECKING:  # for editors and type checkers, the same names as real imports; a test compares them
    from likely import calibration as calibration
    from likely import columns as columns
    from likely import datasets as datasets
    from likely import distributed as distributed
    from likely import gradients as gradients
    from likely import information as information
    from likely import montecarlo as montecarlo
    from likely import nets as nets
    from likely import objectives as objectives
    from likely import training as training
    from likely.contract.conditional import Conditional as Conditional
    from likely.contract.effort import EvidenceWarning as EvidenceWarning
    from likely.contract.estimator import Estimator as Estimator
    from likely.contract.estimator import load as load
    from likely.contract.evidence import Evidence as Evidence
    from likely.contract.evidence import IncomparableError as IncomparableError
    from likely.contract.model import Model as Model
    from likely.contract.predictor import Predictor as Predictor
    from likely.contract.sequence_model import SequenceModel as SequenceModel
    from likely.contract.sequence_predictor import SequencePredictor as SequencePredictor
    from likely.contract.surprise.results import CellSurprise as CellSurprise
    from likely.contract.surprise.results import Surprise as Surprise
    from likely.datasets import Corpus as Corpus
    from likely.datasets import DataError as DataError
    from likely.information.fidelity.fidelity import fidelity as fidelity
    from likely.information.fidelity.result import Fidelity as Fidelity
    from likely.information.two_sample import classifier_test as classifier_test
    from likely.information.two_sample import mmd_test as mmd_test
    from likely.leaderboard import Leaderboard as Leaderboard
    from likely.leaderboard import compare as compare
    from likely.models.energy.harmonium.rbm import RBM as RBM
    from likely.models.energy.harmonium.rbm_classifier import RBMClassifier as RBMClassifier
    from likely.models.energy.layered.dbm.dbm import DBM as DBM
    from likely.models.energy.layered.dbn.dbn import DBN as DBN
    from likely.models.energy.network.energy_model import EnergyModel as EnergyModel
    from likely.models.energy.pairwise.boltzmann_machine import BoltzmannMachine as BoltzmannMachine
    from likely.models.energy.pairwise.hopfield import Hopfield as Hopfield
    from likely.models.energy.pairwise.tour import hopfield_tour as hopfield_tour
    from likely.models.graphs.autoregressive.autoregressive import Autoregressive as Autoregressive
    from likely.models.graphs.bayesian_network.building import read_network as read_network
    from likely.models.graphs.bayesian_network.network import BayesianNetwork as BayesianNetwork
    from likely.models.graphs.circuit.circuit import Circuit as Circuit
    from likely.models.graphs.graph.graph import Graph as Graph
    from likely.models.graphs.graph.graph import GraphError as GraphError
    from likely.models.graphs.independent import Independent as Independent
    from likely.models.graphs.inference.factor import Factor as Factor
    from likely.models.graphs.inference.junction_tree import ImpossibleError as ImpossibleError
    from likely.models.graphs.inference.memory import TooLargeError as TooLargeError
    from likely.models.graphs.markov_field.field import MarkovField as MarkovField
    from likely.models.graphs.trees.tree_mixture import TreeMixture as TreeMixture
    from likely.models.language.embeddings.skipgram import SkipGram as SkipGram
    from likely.models.language.ngram.ngram import NGram as NGram
    from likely.models.language.pairs.neural_turing_machine import NeuralTuringMachine as NeuralTuringMachine
    from likely.models.language.pairs.seq2seq import Seq2Seq as Seq2Seq
    from likely.models.language.pairs.sequence_classifier import SequenceClassifier as SequenceClassifier
    from likely.models.language.pairs.sequence_labeller import SequenceLabeller as SequenceLabeller
    from likely.models.language.recurrent.gradient_flow import gradient_flow as gradient_flow
    from likely.models.language.recurrent.recurrent_lm import RecurrentLM as RecurrentLM
    from likely.models.latent.adversarial.gan import GAN as GAN
    from likely.models.latent.diagnosis.disentanglement import beta_vae_score as beta_vae_score
    from likely.models.latent.diagnosis.disentanglement import mutual_information_gap as mutual_information_gap
    from likely.models.latent.diagnosis.evidence_gap import annealed_evidence as annealed_evidence
    from likely.models.latent.diagnosis.evidence_gap import bidirectional_gap as bidirectional_gap
    from likely.models.latent.diagnosis.evidence_gap import evidence_gap as evidence_gap
    from likely.models.latent.diagnosis.walks import interpolate as interpolate
    from likely.models.latent.diagnosis.walks import manifold as manifold
    from likely.models.latent.diagnosis.walks import traverse as traverse
    from likely.models.latent.flow.generator import Generator as Generator
    from likely.models.latent.linear.factor_analysis import FactorAnalysis as FactorAnalysis
    from likely.models.latent.linear.linear_autoencoder import LinearAutoencoder as LinearAutoencoder
    from likely.models.latent.linear.probabilistic_pca import ProbabilisticPCA as ProbabilisticPCA
    from likely.models.latent.mixture.mixture import Mixture as Mixture
    from likely.models.latent.mixture.stack import Stack as Stack
    from likely.models.latent.variational.autoencoder import Autoencoder as Autoencoder
    from likely.models.latent.variational.deep_latent_gaussian import DeepLatentGaussian as DeepLatentGaussian
    from likely.models.latent.variational.discrete.discrete_vae import DiscreteVAE as DiscreteVAE
    from likely.models.latent.variational.semi_supervised.semi_supervised_vae import (
        SemiSupervisedVAE as SemiSupervisedVAE,
    )
    from likely.models.latent.variational.vae import VAE as VAE
    from likely.models.prediction.anomaly_detector import AnomalyDetector as AnomalyDetector
    from likely.models.prediction.bagged import Bagged as Bagged
    from likely.models.prediction.imputer import Imputer as Imputer
    from likely.models.prediction.joint import JointPredictor as JointPredictor
    from likely.models.prediction.linear.linear_predictor import LinearPredictor as LinearPredictor
    from likely.models.prediction.network.network_predictor import NetworkPredictor as NetworkPredictor
    from likely.models.prediction.pretrained.classifier import PretrainedClassifier as PretrainedClassifier
    from likely.models.prediction.pretrained.pretraining import PretrainedStack as PretrainedStack
    from likely.models.prediction.pretrained.pretraining import pretrain as pretrain
    from likely.models.prediction.support_vectors import SupportVectorMachine as SupportVectorMachine
    from likely.schema import Column as Column
    from likely.schema import Schema as Schema
    from likely.schema import SchemaError as SchemaError
    from likely.storage.files import FileError as FileError
    from likely.training import Checkpoint as Checkpoint
    from likely.training import TrainingError as TrainingError

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
    "Surprise": "likely.contract.surprise.results",
    "CellSurprise": "likely.contract.surprise.results",
    "Checkpoint": "likely.training",
    "TrainingError": "likely.training",
    "Corpus": "likely.datasets",
    "DataError": "likely.datasets",
    "Leaderboard": "likely.leaderboard",
    "compare": "likely.leaderboard",
    "Graph": "likely.models.graphs.graph.graph",
    "GraphError": "likely.models.graphs.graph.graph",
    "Factor": "likely.models.graphs.inference.factor",
    "ImpossibleError": "likely.models.graphs.inference.junction_tree",
    "TooLargeError": "likely.models.graphs.inference.memory",
    "read_network": "likely.models.graphs.bayesian_network.building",
    "hopfield_tour": "likely.models.energy.pairwise.tour",
    "annealed_evidence": "likely.models.latent.diagnosis.evidence_gap",
    "bidirectional_gap": "likely.models.latent.diagnosis.evidence_gap",
    "evidence_gap": "likely.models.latent.diagnosis.evidence_gap",
    "traverse": "likely.models.latent.diagnosis.walks",
    "interpolate": "likely.models.latent.diagnosis.walks",
    "manifold": "likely.models.latent.diagnosis.walks",
    "mutual_information_gap": "likely.models.latent.diagnosis.disentanglement",
    "beta_vae_score": "likely.models.latent.diagnosis.disentanglement",
    "fidelity": "likely.information.fidelity.fidelity",
    "Fidelity": "likely.information.fidelity.result",
    "classifier_test": "likely.information.two_sample",
    "mmd_test": "likely.information.two_sample",
    "gradient_flow": "likely.models.language.recurrent.gradient_flow",
    "Imputer": "likely.models.prediction.imputer",
    "AnomalyDetector": "likely.models.prediction.anomaly_detector",
    "pretrain": "likely.models.prediction.pretrained.pretraining",
    "PretrainedStack": "likely.models.prediction.pretrained.pretraining",
} | {entry.class_name: entry.module for entry in registry.ENTRIES}

_PACKAGES = (
    "calibration",
    "columns",
    "datasets",
    "distributed",
    "gradients",
    "information",
    "montecarlo",
    "nets",
    "objectives",
    "training",
)

__all__ = sorted([*_HOMES, *_PACKAGES, "__version__"])


if not TYPE_CHECKING:  # a type checker that saw this would take any name for one of ours

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
