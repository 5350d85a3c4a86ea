"""Mutants of the settings."""
