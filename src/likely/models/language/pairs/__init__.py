"""Models of pairs, p(target | input): a sequence, a label for each token, or one label, from a sequence."""
