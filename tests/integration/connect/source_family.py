"""The two families of sources that our files are for, and how far each can be tested here."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

SERVICES = "META-INF/services/org.apache.kafka.connect.source.SourceConnector"


@dataclass(frozen=True, slots=True)
class SourceFamily:
    """One family; ``given`` is what the connector at hand needs otherwise than the file says."""

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
    for jar in sorted(directory.glob("*.jar")):
        with zipfile.ZipFile(jar) as archive:
            if SERVICES in archive.namelist():
                found = archive.read(SERVICES).decode().split()[-1]
                support = "requested" if found.startswith("io.confluent.") else "required"
                return SourceFamily("jdbc", {"connector__class": found, "exactly__once__support": support})
    raise AssertionError(f"no jar in {directory} has {SERVICES}")
