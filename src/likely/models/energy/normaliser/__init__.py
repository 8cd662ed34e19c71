"""log Z of energy models: enumerated or annealed, remembered, and turned with the sums of rows into evidence."""
