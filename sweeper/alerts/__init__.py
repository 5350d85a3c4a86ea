"""Alerts by webhook: too many dead letters, for places without Prometheus."""
