"""Networks that predict: what they read, what they say of a target, and what is known of their weights."""
