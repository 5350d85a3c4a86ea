"""What every service process does: signals, checks before the start, health, the limit of a stop."""
