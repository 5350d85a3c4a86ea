"""How dead letters are handled again: the jobs, and what their executor does."""
