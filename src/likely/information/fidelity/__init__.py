"""How true drawn rows are to real ones: the parts of `likely.fidelity`, a question each."""
