"""Files of arrays and JSON, modules as named arrays, and the register of every estimator by name."""
