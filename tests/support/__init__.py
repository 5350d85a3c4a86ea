"""Clients and processes for the tests; shares nothing with the product's own clients."""
