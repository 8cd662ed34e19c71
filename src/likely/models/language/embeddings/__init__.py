"""Vectors of words, learned from their neighbours: compiled kernels, a softmax, and word2vec's files."""
