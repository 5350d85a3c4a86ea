"""Check the installed versions against those that the tests ran with."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import confluent_kafka

from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.jvm import jar_directory, java_command, java_major
from wait_registry.settings.root import Settings

# What the tests run with; older versions may work, but are untested.
TESTED_CLIENT: Final = (2, 16)
TESTED_SPARK: Final = (4, 2, 1)

UPGRADE: Final = "pip install --upgrade wait-registry"
INSTALL_SPARK: Final = "pip install 'wait-registry[sink]'"
INSTALL_JAVA: Final = "install a Java runtime of version 17 or newer, and put it on PATH or name it in JAVA_HOME"
_JAVA_S: Final = 30.0


def python(_settings: Settings) -> Iterator[Diagnosis]:
    """Report which Python runs this (an older one than 3.11 can't even start it)."""
    yield ok(platform.python_version())


def kafka_client(_settings: Settings) -> Iterator[Diagnosis]:
    """Report which Kafka client is installed."""
    seen, library = str(confluent_kafka.version()), confluent_kafka.libversion()[0]
    yield _against(f"confluent-kafka {seen}, librdkafka {library}", seen, TESTED_CLIENT, UPGRADE)


def spark(_settings: Settings) -> Iterator[Diagnosis]:
    """Report which Spark is installed, without starting it."""
    try:
        seen = version("pyspark")
    except PackageNotFoundError:
        yield error("the Python package pyspark isn't installed", INSTALL_SPARK)
        return
    yield _against(f"pyspark {seen}", seen, TESTED_SPARK, INSTALL_SPARK)


def java(_settings: Settings) -> Iterator[Diagnosis]:
    """Find the Java that Spark will run on, and its version; raise ConfigurationError without one of 17 or newer."""
    found = java_command()
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False, timeout=_JAVA_S)
    yield ok(f"{found}, version {java_major(said.stderr + said.stdout)}")


def jars(settings: Settings) -> Iterator[Diagnosis]:
    """Verify the jars byte for byte; raise ConfigurationError that names the first that isn't as committed."""
    yield ok(str(jar_directory("spark", settings.spark.jars_dir)))


def _against(seen: str, given: str, tested: tuple[int, ...], fix: str) -> Diagnosis:
    if parts(given) >= tested:
        return ok(seen)
    least = ".".join(map(str, tested))
    return warning(f"{seen}, older than {least}, which it was tested with", fix)


def parts(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: ``2.16.1rc1`` is (2, 16, 1)."""
    leading = re.match(r"(\d+(\.\d+)*)?", text)
    return tuple(map(int, leading[0].split("."))) if leading and leading[0] else ()
