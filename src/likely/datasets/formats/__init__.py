"""Files that rows are read from."""
