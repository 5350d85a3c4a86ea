"""Kafka and Postgres on this machine, without Docker."""
