"""Autoencoders whose latents are bits or categories."""
