"""CSV text: its encoding, its rows, its names, and what its cells are."""
