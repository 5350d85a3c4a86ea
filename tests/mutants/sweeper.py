"""Mutants of the sweeper."""
