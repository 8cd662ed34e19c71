"""Machines of several hidden layers, and their learning layer by layer and together."""
