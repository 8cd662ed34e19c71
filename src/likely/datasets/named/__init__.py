"""The data sets that `load` knows by name: a module for each, or for a few that come in the same files."""
