"""Models given by a graph over the columns."""
