"""Check this machine: versions, Java and jars, disk space for Spark's scratch files, and the telemetry port."""

from __future__ import annotations

import errno
import http.client
import os
import platform
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

import confluent_kafka

from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.java.jars import jar_directory, java_command
from wait_registry.settings.tree import Settings
from waitreg.doctor.check import Concerned

INSTALL_JAVA: Final = "install a Java runtime of version 17 or newer, and put it on PATH or name it in JAVA_HOME"
GIB: Final = 1 << 30
MIB: Final = 1 << 20
_MOVE: Final = 'set "spark.local.dir" in [spark.conf] to another folder'
_ANSWER_S: Final = 3.0
_READY: Final = re.compile(r'^waitreg_ready\{[^}]*service="(\w+)"[^}]*\} (\S+)', re.MULTILINE)
_GROUP: Final = re.compile(r'^waitreg_processor_info\{[^}]*consumer_group="([^"]+)"', re.MULTILINE)
_MOST_BYTES: Final = 4 << 20


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


def disk(settings: Settings) -> Iterator[Diagnosis]:
    """Look at the folders in which Spark spills and shuffles (spark.local.dir, SPARK_LOCAL_DIRS, the temporary one)."""
    given = os.environ.get("SPARK_LOCAL_DIRS") or settings.spark.conf.get("spark.local.dir") or tempfile.gettempdir()
    for folder in (Path(name.strip()).absolute() for name in given.split(",")):
        # It is created at the first start.
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if os.access(there, os.W_OK | os.X_OK):
            yield space_line(str(folder), shutil.disk_usage(there).free)
        else:
            yield error(f"{there} can't be written to", f"chown it to this user, or {_MOVE}")


def space_line(folder: str, free_bytes: int) -> Diagnosis:
    """Warn below 1 GiB, and refuse below 100 MiB."""
    seen = f"{free_bytes // MIB:,} MiB free in {folder}"
    if free_bytes >= GIB:
        return ok(seen)
    return (error if free_bytes < 100 * MIB else warning)(f"{seen}, less than 1 GiB", f"free space there, or {_MOVE}")


def telemetry_port(services: Sequence[Concerned], settings: Settings) -> Iterator[Diagnosis]:
    """Try to listen; if the port is taken, ask by which service."""
    host, port = settings.telemetry.host, settings.telemetry.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # With SO_REUSEADDR, as the service does, so that lingering connections of an earlier run don't matter.
        socket.create_server((host, port), family=family).close()
        yield ok(f"{host}:{port} is free" if port else f"any free one of {host}")
    except OSError as failure:
        if failure.errno == errno.EADDRINUSE:
            yield _taken(host, port, services, settings.processor.group)
        else:
            fix = "set telemetry.host to an address of this host, telemetry.port to one that this user may take"
            yield error(f"can't listen on {host}:{port}: {failure.strerror or failure}", fix)


def _taken(host: str, port: int, services: Sequence[Concerned], group: str) -> Diagnosis:
    """Judge who listens: a service of ours that isn't being checked is only a warning.

    On a host with several services, each may be started with its own port, which these settings needn't have.
    """
    metrics = _metrics({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)
    ready, grouped = _READY.search(metrics), _GROUP.search(metrics)
    if ready is None:
        seen = f"{host}:{port} is taken by something that isn't a service of wait-registry"
        return error(seen, "set telemetry.port to a free one (0 takes any)")
    listener = f"running {ready[1]}{f' of the group {grouped[1]}' if grouped else ''}"
    if ready[1] not in services or (grouped and grouped[1] != group):
        fix = "give each service of a host its own telemetry.port when it starts (0 takes any free one)"
        return warning(f"{host}:{port} is taken by a {listener}", fix)
    return ok(f"{host}:{port} is in use by a {listener}, {'ready' if float(ready[2]) else 'not ready'}")


def _metrics(host: str, port: int) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=_ANSWER_S)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
