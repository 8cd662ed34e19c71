"""The report of a comparison: one HTML file with everything in it."""
