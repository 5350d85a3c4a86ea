"""Kafka: clients, requests, the cluster's topics and groups.

A function that asks the cluster raises `TransientError` if the cluster can't be reached now (retry), and
`ConfigurationError` if the broker refuses us; docstrings name further errors only.
"""
