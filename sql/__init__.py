"""The SQL files, as a resource package (`wait_registry_sql`)."""
