"""How one column of a user becomes cells of the exponential families: exactly, and back."""
