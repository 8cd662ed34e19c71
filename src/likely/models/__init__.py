"""Every model, one file each, in families."""
