"""Formats of files, a module each, from bytes to arrays and data frames; and the user's own files of any of them."""
