"""Information, typed: entropies, divergences and what variables share, of distributions, counts, rows and models."""

from likely.information.counts import Counts
from likely.information.distributions import ColumnFamily, Density, Discrete, Distribution, Gaussian
from likely.information.measures import (
    conditional_entropy,
    cross_entropy,
    entropy,
    jensen_shannon,
    kl,
    mutual_information,
    perplexity,
    pmi,
)
from likely.information.quantity import Information
from likely.information.samples import Samples

__all__ = [
    "ColumnFamily",
    "Counts",
    "Density",
    "Discrete",
    "Distribution",
    "Gaussian",
    "Information",
    "Samples",
    "conditional_entropy",
    "cross_entropy",
    "entropy",
    "jensen_shannon",
    "kl",
    "mutual_information",
    "perplexity",
    "pmi",
]
