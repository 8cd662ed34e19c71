"""Layers that learn without labels first, and a classifier on top of them."""
