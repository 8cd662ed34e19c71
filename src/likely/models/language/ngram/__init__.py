"""n-grams: counting, smoothing, look-up, gaps in sentences, and ARPA files."""
