"""What is needed to fetch and verify the jars, as a resource package (`wait_registry_jvm`)."""
