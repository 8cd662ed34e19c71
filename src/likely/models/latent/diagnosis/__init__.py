"""Looking into latent models: how far a bound is from the truth, walks in a code, disentanglement."""
