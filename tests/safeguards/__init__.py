"""The catalogue of safeguards, a function for each that removes it, for `make mutants` and the simulation."""
