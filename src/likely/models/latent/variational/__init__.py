"""Autoencoders: with a bound on the likelihood, and plain."""
