"""Graphs over named columns: what follows from a structure alone, before any number is known."""
