"""The demo: the whole system at work on real parts, measured from outside."""
