"""Decisions without I/O, many of them as Hypothesis properties."""
