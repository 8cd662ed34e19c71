"""Bayesian networks: a graph, and the distribution of each node given its parents."""
