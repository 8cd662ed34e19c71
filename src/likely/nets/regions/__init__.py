"""What is known of rectifier networks: their linear regions, and piecewise-linear functions written as networks."""

from likely.nets.regions.counting import cells, deep_lower_bound, folding_network, upper_bound
from likely.nets.regions.enumeration import Region, enumerate_regions, n_linear_maps
from likely.nets.regions.layers import Rectifiers
from likely.nets.regions.linear import collapse, gradient_flow, half_gradients, mode_strength, risk
from likely.nets.regions.max_affine import MaxAffineDifference, MaxoutPair
from likely.nets.regions.piecewise import PiecewiseLinear, SumOfTerms
from likely.nets.regions.slices import knots_on_segment, regions_on_plane

__all__ = [
    "MaxAffineDifference",
    "MaxoutPair",
    "PiecewiseLinear",
    "Rectifiers",
    "Region",
    "SumOfTerms",
    "cells",
    "collapse",
    "deep_lower_bound",
    "enumerate_regions",
    "folding_network",
    "gradient_flow",
    "half_gradients",
    "knots_on_segment",
    "mode_strength",
    "n_linear_maps",
    "regions_on_plane",
    "risk",
    "upper_bound",
]
