"""`waitreg dlq`: dead letters, for the people who decide about them."""
