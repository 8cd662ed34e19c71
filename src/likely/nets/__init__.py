"""Networks, from Equinox parts, and the way from a network's output to a table's columns."""

from likely.nets.column_interface import encoder_features, location_mean, location_natural, log_density_at, n_locations
from likely.nets.convolution import Convolution, ImageDecoder, ImageEncoder, TransposedConvolution
from likely.nets.mlp import ACTIVATIONS, MLP

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "Convolution",
    "ImageDecoder",
    "ImageEncoder",
    "TransposedConvolution",
    "encoder_features",
    "location_mean",
    "location_natural",
    "log_density_at",
    "n_locations",
]
