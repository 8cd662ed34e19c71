"""Any network as an energy."""
