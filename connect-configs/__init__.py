"""Connectors of Kafka Connect, as a resource package (`wait_registry_connect`)."""
