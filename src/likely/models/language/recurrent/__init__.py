"""A language model of recurrent cells: its network, how it writes, and how gradients fare through time."""
