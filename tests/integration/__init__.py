"""Every guarantee on a real broker, a real Postgres, a real Spark."""
