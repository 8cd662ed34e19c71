"""Sequences, or labels, from sequences."""
