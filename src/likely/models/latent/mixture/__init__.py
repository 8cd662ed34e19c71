"""Mixtures of products and of Gaussians."""
