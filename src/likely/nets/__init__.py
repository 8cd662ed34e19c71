"""Networks, from Equinox parts, and the way from a network's output to a table's columns."""

from likely.nets.backpropagation import LayerGradient, backpropagate, jacobians
from likely.nets.column_interface import encoder_features, location_mean, location_natural, log_density_at, n_locations
from likely.nets.convolution import Convolution, ImageDecoder, ImageEncoder, TransposedConvolution
from likely.nets.convolve import convolve, correlate, fastest, toeplitz, turned
from likely.nets.dropout import averaged_masks, drop, geometric_mean, rescaled
from likely.nets.mlp import ACTIVATIONS, MLP, maxout, parametric
from likely.nets.normalisation import (
    BatchNorm,
    RunningMoments,
    folded_into_next,
    folded_into_previous,
    local_response,
)
from likely.nets.pooling import max_pool, mean_pool
from likely.nets.windows import n_places

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "BatchNorm",
    "Convolution",
    "ImageDecoder",
    "ImageEncoder",
    "LayerGradient",
    "RunningMoments",
    "TransposedConvolution",
    "averaged_masks",
    "backpropagate",
    "convolve",
    "correlate",
    "drop",
    "encoder_features",
    "fastest",
    "folded_into_next",
    "folded_into_previous",
    "geometric_mean",
    "jacobians",
    "local_response",
    "location_mean",
    "location_natural",
    "log_density_at",
    "max_pool",
    "maxout",
    "mean_pool",
    "n_locations",
    "n_places",
    "parametric",
    "rescaled",
    "toeplitz",
    "turned",
]
