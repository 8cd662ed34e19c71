"""Chains of conditionals, p(x) = Π p(x_j | the cells before j), of trees, linear maps, boosted trees or a network."""
