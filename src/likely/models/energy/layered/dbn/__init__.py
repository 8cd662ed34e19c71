"""The deep belief network."""
