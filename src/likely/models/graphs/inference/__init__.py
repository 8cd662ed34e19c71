"""Exact inference over discrete nodes: factors, elimination orders, junction trees, propagation of many rows."""
