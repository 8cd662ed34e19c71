"""What every estimator keeps: settings, seeds, reading, files, and the contracts of p(x), p(y | x), text and pairs."""
