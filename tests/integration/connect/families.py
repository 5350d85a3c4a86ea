"""The two families of sinks and of sources that our files are for, and how far each can be tested here."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.support.golden_corpus import Corpus, Malformed


@dataclass(frozen=True, slots=True)
class SinkFamily:
    """One family of sinks; ``connector_class`` replaces the file's, if given."""

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
        """What makes it fail soon when the database refuses something; as `changes`."""
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


@dataclass(frozen=True, slots=True)
class SourceFamily:
    """One family of sources; ``given`` is what the given connector needs instead of the file's properties."""

    name: Literal["debezium", "jdbc"]
    given: Mapping[str, str] = field(default_factory=dict)

    def file(self, connector: str) -> str:
        """Return the connector's file for this family."""
        return f"{connector}.{self.name}.json"

    @property
    def changes(self) -> dict[str, str]:
        """What a file's properties are changed to, as `Connectors.start` takes it: no test waits for five seconds."""
        if self.name == "debezium":
            return {
                "heartbeat__interval__ms": "300",
                "retriable__restart__connector__wait__ms": "500",
                "slot__retry__delay__ms": "500",
            }
        return {"poll__interval__ms": "300", "connection__backoff__ms": "500", **self.given}


def jdbc_family(directory: Path) -> SourceFamily:
    """Return the family of the JDBC connector in a folder; one that knows KIP-618 is asked for exactly once."""
    found = connector_class(directory, "source")
    support = "requested" if found.startswith("io.confluent.") else "required"
    return SourceFamily("jdbc", {"connector__class": found, "exactly__once__support": support})
