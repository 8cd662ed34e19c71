"""Autoencoders of rows of which some have a label."""
