"""Whole-system runs, in the release tier."""
