"""Mutants of the sink."""
