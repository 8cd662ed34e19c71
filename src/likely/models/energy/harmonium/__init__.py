"""The restricted Boltzmann machine: its learning, its answers by enumeration or annealing, its classifier."""
