"""Spark as sink, sweeper and rebuild use it; importing this needs no pyspark."""

from __future__ import annotations

from wait_registry.errors import TransientError, WaitRegistryError


class SparkGone(WaitRegistryError):
    """Spark's JVM or its scratch folders are gone: end the process, and let its supervisor start it again."""


class StartStopped(TransientError):
    """A stop was requested before Spark had started: end the process."""


def jvm_gone(error: Exception) -> SparkGone:
    """Return what to raise when Spark's JVM doesn't answer; ``error`` says how."""
    return SparkGone(
        f"Spark's JVM has ended ({type(error).__name__}: {error}; out of memory? see its output above). "
        "Start this service again"
    )
