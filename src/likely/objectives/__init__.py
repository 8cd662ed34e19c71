"""How a model learns: objectives for the training loop, and expectation-maximisation."""
