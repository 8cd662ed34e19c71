"""Benchmarks: likely beside its peers and beside published figures. Run them with `make bench`."""
