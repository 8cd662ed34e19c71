"""Recurrent cells along text."""
