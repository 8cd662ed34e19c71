"""The table of every estimator of the library: what it is called, where it lives, what it learns from and offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
