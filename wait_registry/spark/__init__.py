"""Spark as sink, sweeper and rebuild use it; importing this needs no pyspark."""

from wait_registry.errors import WaitRegistryError


class SparkGone(WaitRegistryError):
    """Spark's JVM has ended, and with it all it did: end the process, and let its supervisor start it again."""
