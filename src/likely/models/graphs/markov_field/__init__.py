"""Markov fields: products of potentials on cliques of an undirected graph."""
