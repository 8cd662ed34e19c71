"""Machines of pairwise couplings between binary units: Boltzmann machines, Hopfield networks, tours."""
