"""Graphs from data."""
