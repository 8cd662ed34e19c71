"""The deep Boltzmann machine."""
