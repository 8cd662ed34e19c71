"""Sum-product circuits: sums and products of columns' distributions, in which every marginal is one pass."""
