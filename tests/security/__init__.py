"""The services with the rights of `deploy/` only, and that they show no secret and no payload."""
