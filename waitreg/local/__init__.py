"""Kafka, Postgres and Kafka Connect on this machine, without Docker."""
