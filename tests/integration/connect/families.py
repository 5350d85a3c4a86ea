"""The two families of connectors that our files are for, and what a test changes in those files."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.integration.connect.golden_corpus import Corpus, Malformed

Kind = Literal["sink", "source"]
# No test waits for a source's pauses of seconds.
QUICK = {
    "debezium": {
        "heartbeat.interval.ms": "300",
        "retriable.restart.connector.wait.ms": "500",
        "slot.retry.delay.ms": "500",
    },
    "jdbc": {"poll.interval.ms": "300", "connection.backoff.ms": "500"},
}
# With these a sink fails soon when the database refuses something.
IMPATIENT = {
    "debezium": {"flush.max.retries": "1", "flush.retry.delay.ms": "200"},
    "jdbc": {"max.retries": "1", "retry.backoff.ms": "200", "connection.attempts": "1"},
}


@dataclass(frozen=True, slots=True)
class Family:
    """One family of connectors; that of the JDBC connectors is in a given folder of jars."""

    name: Literal["debezium", "jdbc"] = "debezium"
    jars: Path | None = None

    def file(self, connector: str) -> str:
        """Return the connector's file for this family."""
        return f"{connector}.{self.name}.json"

    def changes(self, kind: Kind) -> Mapping[str, str]:
        """Return what a file's properties are changed to; a source that knows KIP-618 writes exactly once."""
        quick = QUICK[self.name] if kind == "source" else {}
        if self.jars is None:
            return quick
        found = connector_class(self.jars, kind)
        support = "requested" if found.startswith("io.confluent.") else "required"
        exactly_once = {"exactly.once.support": support} if kind == "source" else {}
        return {**quick, "connector.class": found, **exactly_once}

    def malformed(self, corpus: Corpus) -> list[Malformed]:
        """Return the unreadable records that a sink can be given: the JDBC family's stops at the first."""
        return corpus.malformed() if self.name == "debezium" else []


def connector_class(directory: Path, kind: Kind) -> str:
    """Return the connector of that kind among a folder's jars; AssertionError when none of them names one."""
    services = f"META-INF/services/org.apache.kafka.connect.{kind}.{kind.capitalize()}Connector"
    for jar in sorted(directory.glob("*.jar")):
        with zipfile.ZipFile(jar) as archive:
            if services in archive.namelist():
                return archive.read(services).decode().split()[-1]
    raise AssertionError(f"no jar in {directory} has {services}")
