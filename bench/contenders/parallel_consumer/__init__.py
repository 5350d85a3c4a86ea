"""Confluent's Parallel Consumer as a contender: a small Java program on its core module, and what starts it."""
