"""n-grams: counts, smoothing, compact tables, ARPA files."""
