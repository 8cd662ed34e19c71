"""Every model by name: what the command line offers, what a file may name, what `likely.<Name>` imports.

Only names here: a class is imported when it is asked for. A file's class name is looked up in this table and nowhere
else, so a file cannot cause anything but a model of ours to be built.
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from typing import Any, Literal

# What a model may offer besides fit, evidence and save: the public methods by the hook that a model writes.
HOOKS = {
    "_evidence": ("score_samples", "score", "surprise"),
    "_sample": ("sample",),
    "_condition": ("condition", "impute"),
    "_reconstruct": ("denoise",),
    "_encode": ("transform", "fit_transform"),
    "_decode": ("inverse_transform",),
}


_OF_TABLES = ("surprise",)  # what models of text lack all the same

_DENSITY = ("_evidence", "_sample")
_CODE = ("_reconstruct", "_encode", "_decode")


LearnsFrom = Literal["rows", "labels", "text", "pairs"]


@dataclass(frozen=True)
class Entry:
    """An estimator of the library.

    Parameters
    ----------
    class_name, module : what it is called, and where it lives.
    family : the room of `likely.models` that it is in.
    summary : what it is in one line.
    hooks : those that it has, and so the methods that it offers.
    learns_from : "rows" of a table; rows and their "labels"; "text"; or "pairs" of sequences.
    is_weighted : whether its fit takes weights of rows.
    """

    class_name: str
    module: str
    family: str
    summary: str
    hooks: tuple[str, ...] = tuple(HOOKS)
    learns_from: LearnsFrom = "rows"
    is_weighted: bool = False

    @property
    def has_evidence(self) -> bool:
        """Whether the model has a likelihood, be it exact, a bound or an estimate."""
        return "_evidence" in self.hooks

    @property
    def name(self) -> str:
        """The name on the command line."""
        return self.class_name.lower()

    @property
    def offers(self) -> tuple[str, ...]:
        """Public methods beyond those of every model."""
        verbs = (verb for hook in self.hooks for verb in HOOKS[hook])
        return tuple(verb for verb in verbs if verb not in _OF_TABLES or self.learns_from in ("rows", "labels"))


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "Independent",
        "likely.models.graphs.independent",
        "graphs",
        "product of the columns' marginals",
        hooks=(*_DENSITY, "_condition"),
        is_weighted=True,
    ),
    Entry(
        "Autoregressive",
        "likely.models.graphs.autoregressive.autoregressive",
        "graphs",
        "each column given those before it, by trees, a network ..., in several orders",
        hooks=(*_DENSITY, "_condition"),
    ),
    Entry(
        "BayesianNetwork",
        "likely.models.graphs.bayesian_network.network",
        "graphs",
        "a directed graph of the columns, with tables, linear Gaussians and rates",
        hooks=(*_DENSITY, "_condition"),
        is_weighted=True,
    ),
    Entry(
        "MarkovField",
        "likely.models.graphs.markov_field.field",
        "graphs",
        "potentials on the nodes and edges of an undirected graph",
        hooks=(*_DENSITY, "_condition"),
    ),
    Entry(
        "TreeMixture",
        "likely.models.graphs.trees.tree_mixture",
        "graphs",
        "mixture of the columns' most likely trees, by EM",
        hooks=(*_DENSITY, "_condition"),
    ),
    Entry(
        "Circuit",
        "likely.models.graphs.circuit.circuit",
        "graphs",
        "hidden trees: a latent beside each column along their tree; sums and products",
        hooks=(*_DENSITY, "_condition"),
    ),
    Entry(
        "Mixture",
        "likely.models.latent.mixture.mixture",
        "latent",
        "mixture of products or of Gaussians, by EM",
        is_weighted=True,
    ),
    Entry(
        "ProbabilisticPCA",
        "likely.models.latent.linear.probabilistic_pca",
        "latent",
        "linear code, equal noise in all columns; closed form or EM",
        is_weighted=True,
    ),
    Entry(
        "FactorAnalysis",
        "likely.models.latent.linear.factor_analysis",
        "latent",
        "linear code, own noise for each column; EM",
        is_weighted=True,
    ),
    Entry(
        "Generator",
        "likely.models.latent.flow.generator",
        "latent",
        "an invertible map of noise: a Gaussian, one bent column by column, or layers of splines",
        hooks=(*_DENSITY, "_condition"),
    ),
    Entry(
        "Stack",
        "likely.models.latent.mixture.stack",
        "latent",
        "a mixture of different models, weighed by rows that they have not seen",
        hooks=(*_DENSITY, "_condition"),
    ),
    Entry(
        "LinearAutoencoder",
        "likely.models.latent.linear.linear_autoencoder",
        "latent",
        "the best linear code, by gradient",
        hooks=_CODE,
    ),
    Entry(
        "Autoencoder",
        "likely.models.latent.variational.autoencoder",
        "latent",
        "networks both ways: denoising, sparse, contractive",
        hooks=_CODE,
    ),
    Entry(
        "Hopfield",
        "likely.models.energy.pairwise.hopfield",
        "energy",
        "associative memory, pairwise or dense",
        hooks=(*_DENSITY, "_condition", "_reconstruct"),
    ),
    Entry(
        "BoltzmannMachine",
        "likely.models.energy.pairwise.boltzmann_machine",
        "energy",
        "pairs of binary units on any graph",
    ),
    Entry(
        "RBM", "likely.models.energy.harmonium.rbm", "energy", "restricted Boltzmann machine, by contrastive divergence"
    ),
    Entry(
        "DBN", "likely.models.energy.layered.dbn.dbn", "energy", "deep belief network, layer by layer, then up and down"
    ),
    Entry(
        "DBM",
        "likely.models.energy.layered.dbm.dbm",
        "energy",
        "deep Boltzmann machine, by mean field and persistent chains",
    ),
    Entry(
        "EnergyModel",
        "likely.models.energy.network.energy_model",
        "energy",
        "any network as an energy, by noise contrast, score matching ...",
        hooks=(*_DENSITY, "_condition"),
    ),
    Entry(
        "GAN",
        "likely.models.latent.adversarial.gan",
        "latent",
        "a generator trained against a critic",
        hooks=("_sample",),
    ),
    Entry("VAE", "likely.models.latent.variational.vae", "latent", "variational autoencoder with networks both ways"),
    Entry(
        "DiscreteVAE",
        "likely.models.latent.variational.discrete.discrete_vae",
        "latent",
        "autoencoder with bits or categories as latents",
    ),
    Entry(
        "DeepLatentGaussian",
        "likely.models.latent.variational.deep_latent_gaussian",
        "latent",
        "several layers of Gaussian latents, with networks between",
    ),
    Entry(
        "PretrainedClassifier",
        "likely.models.prediction.pretrained.classifier",
        "prediction",
        "layers pretrained without labels, fine-tuned with them",
        hooks=(),
        learns_from="labels",
    ),
    Entry(
        "SemiSupervisedVAE",
        "likely.models.latent.variational.semi_supervised.semi_supervised_vae",
        "latent",
        "a VAE of rows of which some have a label",
        hooks=tuple(hook for hook in HOOKS if hook != "_decode"),
        learns_from="labels",
    ),
    Entry(
        "JointPredictor",
        "likely.models.prediction.joint",
        "prediction",
        "a model of rows and target together, which gives the target",
        hooks=(),
        learns_from="labels",
        is_weighted=True,
    ),
    Entry(
        "LinearPredictor",
        "likely.models.prediction.linear.linear_predictor",
        "prediction",
        "linear, logistic, softmax or Poisson regression, with the whole posterior",
        hooks=(),
        learns_from="labels",
        is_weighted=True,
    ),
    Entry(
        "SupportVectorMachine",
        "likely.models.prediction.support_vectors",
        "prediction",
        "a margin in the space of a kernel, its scores calibrated",
        hooks=(),
        learns_from="labels",
    ),
    Entry(
        "Bagged",
        "likely.models.prediction.bagged",
        "prediction",
        "copies of a predictor on bootstrap samples, averaged",
        hooks=(),
        learns_from="labels",
    ),
    Entry(
        "NetworkPredictor",
        "likely.models.prediction.network.network_predictor",
        "prediction",
        "a perceptron or convolutions for any target, with what is known of the weights",
        hooks=(),
        learns_from="labels",
    ),
    Entry(
        "RBMClassifier",
        "likely.models.energy.harmonium.rbm_classifier",
        "energy",
        "an RBM over rows and labels, which names the label",
        hooks=(),
        learns_from="labels",
    ),
    Entry(
        "NGram",
        "likely.models.language.ngram.ngram",
        "language",
        "n-grams with any smoothing, Kneser-Ney to Katz",
        hooks=(*_DENSITY, "_condition"),
        learns_from="text",
    ),
    Entry(
        "RecurrentLM",
        "likely.models.language.recurrent.recurrent_lm",
        "language",
        "recurrent cells along text, LSTM to GRU",
        hooks=_DENSITY,
        learns_from="text",
    ),
    Entry(
        "SkipGram",
        "likely.models.language.embeddings.skipgram",
        "language",
        "vectors of words, by negative sampling, noise contrast or softmax",
        hooks=(),
        learns_from="text",
    ),
    Entry(
        "Seq2Seq",
        "likely.models.language.pairs.seq2seq",
        "language",
        "one sequence from another, by attention",
        hooks=(),
        learns_from="pairs",
    ),
    Entry(
        "SequenceLabeller",
        "likely.models.language.pairs.sequence_labeller",
        "language",
        "a label for each token, read both ways",
        hooks=(),
        learns_from="pairs",
    ),
    Entry(
        "SequenceClassifier",
        "likely.models.language.pairs.sequence_classifier",
        "language",
        "a label for a sequence, from the last output or a tree",
        hooks=(),
        learns_from="pairs",
    ),
    Entry(
        "NeuralTuringMachine",
        "likely.models.language.pairs.neural_turing_machine",
        "language",
        "bits from bits, by way of a memory",
        hooks=(),
        learns_from="pairs",
    ),
)


def learning_from(*sources: LearnsFrom) -> tuple[Entry, ...]:
    """The entries that learn from rows, from labels, from text or from pairs."""
    return tuple(entry for entry in ENTRIES if entry.learns_from in sources)


def listed() -> tuple[Entry, ...]:
    """What the command line fits; for pairs of sequences there is no file that it reads."""
    return learning_from("rows", "labels", "text")


def find(name: str) -> Entry:
    """The entry of what the command line fits, by class name or command-line name, whatever the case."""
    known = {entry.name: entry for entry in listed()}
    if name.lower() in known:
        return known[name.lower()]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"there is no model {name!r}.{hint} Models: {', '.join(known)}.")


# Estimators around models, which a file may name too.
AROUND_MODELS = {
    "AnomalyDetector": "likely.models.prediction.anomaly_detector",
    "Imputer": "likely.models.prediction.imputer",
}


def model_class(name: str) -> Any:
    """The class of an estimator, imported now."""
    if name in AROUND_MODELS:
        return getattr(importlib.import_module(AROUND_MODELS[name]), name)
    entry = next((entry for entry in ENTRIES if entry.class_name == name), None) or find(name)
    return getattr(importlib.import_module(entry.module), entry.class_name)


def weighted(like: str) -> list[str]:
    """Class names of the estimators whose fit takes weights of rows, of models or of predictors as that one is."""
    rows: LearnsFrom = "rows"
    own = next((entry.learns_from for entry in ENTRIES if entry.class_name == like), rows)
    return [entry.class_name for entry in learning_from(own) if entry.is_weighted]


def is_ours(value: Any) -> bool:
    """Whether a value is an estimator of this table."""
    place = (type(value).__name__, type(value).__module__)
    return any(place == (entry.class_name, entry.module) for entry in ENTRIES)


GRAPH = ("Graph", "likely.models.graphs.graph.graph")


def is_graph(value: Any) -> bool:
    """Whether a value is a `likely.Graph`, which a setting may be."""
    return (type(value).__name__, type(value).__module__) == GRAPH


def graph_class() -> Any:
    """`likely.Graph`, imported when it is asked for."""
    return getattr(importlib.import_module(GRAPH[1]), GRAPH[0])


def models_that_can(verb: str, like: str = "") -> list[str]:
    """Class names of the models that offer a method such as "transform", of tables, or of text if `like` is."""
    own = next((entry.learns_from for entry in ENTRIES if entry.class_name == like), "rows")
    kin = learning_from("text") if own in ("text", "pairs") else learning_from("rows")
    return [entry.class_name for entry in kin if verb in entry.offers]
