"""Models given by an energy: p(x) = exp(-E(x)) / Z."""
