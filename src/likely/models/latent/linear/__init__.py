"""Linear codes: factor analysis, probabilistic PCA, the linear autoencoder."""
