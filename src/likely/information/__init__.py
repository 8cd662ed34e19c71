"""Information and how distributions differ: dependence between columns, tests of two samples."""
