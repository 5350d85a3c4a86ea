"""The two families of JDBC sinks that our files are for, and how far each can be tested here."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.support.golden_corpus import Corpus, Malformed


@dataclass(frozen=True, slots=True)
class SinkFamily:
    """One family; ``connector_class`` is its sink where the file's isn't the one that is given."""

    name: Literal["debezium", "jdbc"]
    connector_class: str | None = None

    def file(self, connector: str) -> str:
        """Return the connector's file for this family."""
        return f"{connector}.{self.name}.json"

    @property
    def changes(self) -> dict[str, str]:
        """What a file's properties are changed to, as `Connectors.start` takes it."""
        return {} if self.connector_class is None else {"connector__class": self.connector_class}

    @property
    def impatient(self) -> dict[str, str]:
        """What makes it give up soon when the database doesn't do as it is told; as `changes`."""
        if self.name == "debezium":
            return {"flush__max__retries": "1", "flush__retry__delay__ms": "200"}
        return {"max__retries": "1", "retry__backoff__ms": "200", "connection__attempts": "1"}

    def malformed(self, corpus: Corpus) -> list[Malformed]:
        """Return the unreadable records that it can be given: the JDBC family's configuration stops at the first."""
        return corpus.malformed() if self.name == "debezium" else []


def connector_class(directory: Path, kind: Literal["sink", "source"]) -> str:
    """Return the connector of that kind among a folder's jars; AssertionError when none of them names one."""
    services = f"META-INF/services/org.apache.kafka.connect.{kind}.{kind.capitalize()}Connector"
    for jar in sorted(directory.glob("*.jar")):
        with zipfile.ZipFile(jar) as archive:
            if services in archive.namelist():
                return archive.read(services).decode().split()[-1]
    raise AssertionError(f"no jar in {directory} has {services}")
