"""Trees of the columns, and mixtures of them."""
