"""Report the installed versions, which pip keeps within the bounds of pyproject.toml, and verify Java and the jars."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import Final

import confluent_kafka

from wait_registry.diagnosis import Diagnosis, ok
from wait_registry.java.jars import jar_directory, java_command
from wait_registry.settings.root import Settings

INSTALL_JAVA: Final = "install a Java runtime of version 17 or newer, and put it on PATH or name it in JAVA_HOME"


def packages(_settings: Settings) -> Iterator[Diagnosis]:
    """Report Python (an older one than 3.11 can't even start this) and the Kafka client."""
    client, library = version("confluent-kafka"), confluent_kafka.libversion()[0]
    yield ok(f"Python {platform.python_version()}, confluent-kafka {client}, librdkafka {library}")


def spark(_settings: Settings) -> Iterator[Diagnosis]:
    """Report which Spark is installed, without starting it; raise PackageNotFoundError if none is."""
    yield ok(f"pyspark {version('pyspark')}")


def java(_settings: Settings) -> Iterator[Diagnosis]:
    """Find the Java that Spark will run on; raise ConfigurationError without one of version 17 or newer."""
    yield ok(java_command())


def jars(settings: Settings) -> Iterator[Diagnosis]:
    """Verify the jars byte for byte; raise ConfigurationError that names the first that isn't as committed."""
    yield ok(str(jar_directory("spark", settings.spark.jars_dir)))
