"""What predictors of y from features have in common: laws of y, features of rows, and what stands in for holes."""
