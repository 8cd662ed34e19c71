"""Invertible maps of noise, with an exact density."""
