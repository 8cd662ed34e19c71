"""Models of text, p(sentence), with exact evidence; vectors of words; and models of pairs, p(target | input)."""
