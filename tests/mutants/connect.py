"""Mutants of the connect."""
