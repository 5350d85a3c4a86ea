"""`waitreg doctor`: checks of settings, Kafka, Postgres and services, each with a fix."""
