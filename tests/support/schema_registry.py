"""A real schema registry for a test: Apicurio Registry in memory, by the API that Confluent's clients speak."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.chosen_stack import not_tested
from tests.support.prometheus import TOOLS
from tests.support.server_process import server_process
from wait_registry.java.jars import java_command
from waitreg.local.ports import LOOPBACK, free_ports

ROOT = Path(__file__).parents[2]
# A subject is the topic's name, as with Confluent's serializers before they asked the registry for one.
_SUBJECTS = {"subject.name.strategy.type": "TOPIC"}


@dataclass(frozen=True, slots=True)
class SchemaRegistryServer:
    """One running server."""

    port: int

    @property
    def url(self) -> str:
        """Where clients ask."""
        return registry_url(self.port)

    def avro(self, schema: str, value: dict[str, Any]) -> bytes:
        """Return an Avro value, whose schema the registry has then."""
        from confluent_kafka.schema_registry.avro import AvroSerializer

        return bytes(AvroSerializer(self._client(), schema, conf=_SUBJECTS)(value, _context("avro")))

    def protobuf(self, message: Any) -> bytes:
        """Return a Protobuf value, whose schema the registry has then."""
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

        return bytes(ProtobufSerializer(type(message), self._client(), _SUBJECTS)(message, _context("protobuf")))

    def _client(self) -> Any:
        from confluent_kafka.schema_registry import SchemaRegistryClient

        return SchemaRegistryClient({"url": self.url})


def _context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def registry_url(port: int) -> str:
    """Return the address of a registry behind this port of this host."""
    return f"http://{LOOPBACK}:{port}/apis/ccompat/v7"


@contextmanager
def running_schema_registry(folder: Path) -> Iterator[SchemaRegistryServer]:
    """Start an empty registry; without its jar the test is skipped, on a CI machine it fails."""
    jar = _jar()
    (port,) = free_ports(1)
    server = SchemaRegistryServer(port)
    command = [java_command(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-jar", str(jar)]
    place = {"QUARKUS_HTTP_PORT": str(port), "QUARKUS_HTTP_HOST": LOOPBACK}
    with server_process("schema_registry", command, folder, f"{server.url}/subjects", 120, place):
        yield server


def _jar() -> Path:
    found = next((TOOLS / "apicurio-registry").glob("apicurio-registry-app-*-runner.jar"), None)
    if found is None:
        not_tested("no schema registry is here; `make schema-registry` gets it")
    return found
