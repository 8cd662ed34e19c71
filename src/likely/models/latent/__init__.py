"""Models with latent variables: p(x) is a sum or an integral over a code."""
