"""Linear predictors: Gaussian, logistic, softmax and Poisson."""
