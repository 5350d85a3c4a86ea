"""Values that name their schema, shown by `waitreg dlq show` and the console with a real schema registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from tests.integration.console.served_console import served
from tests.support.schema_registry import SchemaRegistryServer, running_schema_registry
from tests.support.settings import changed
from wait_registry.dead_letters.dead_letter import find
from wait_registry.postgres.connection import connect
from wait_registry.schemas.registry import for_display
from wait_registry.settings.processor import SchemaRegistrySettings
from wait_registry.settings.tree import Settings
from waitreg.dlq.dead_letter_text import lines

ORDER = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "raw", "type": "bytes"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}"""


PRODUCED_US = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistryServer]:
    with running_schema_registry(tmp_path_factory.mktemp("registry")) as server:
        yield server


def nested_message() -> Any:
    """Return a message of the second type's nested type, with a field of one of Google's own types."""
    file = descriptor_pb2.FileDescriptorProto(name="nested.proto", package="shop", syntax="proto3")
    file.dependency.append(timestamp_pb2.DESCRIPTOR.name)
    file.message_type.add(name="First")
    inner = file.message_type.add(name="Second").nested_type.add(name="Inner")
    inner.field.add(name="order_id", number=1, type=3, label=1)
    inner.field.add(name="at", number=2, type=11, label=1, type_name=".google.protobuf.Timestamp")
    pool = descriptor_pool.Default()
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Second.Inner"))(order_id=2**53 + 1)
    message.at.seconds = 1
    return message


def shown(incident: Settings, url: str, value: bytes, offset: int) -> tuple[str, str]:
    """Add a dead letter with a value; return what the command and what the console shows of it."""
    settings = changed(incident, "processor", schema_registry=SchemaRegistrySettings(url=url))
    with connect(incident.postgres, autocommit=True, application_name="test") as connection:
        connection.execute(
            'insert into dead_letter (topic, partition, "offset", dead_letter_time, reason, body, '
            "original_timestamp_ms) values ('decoded', 0, %s, now(), 'failed', %s, %s)",
            (offset, value, PRODUCED_US),
        )
        (letter,) = find(connection, f"decoded:0:{offset}")
        printed = "\n".join(lines(letter, for_display(settings.processor.schema_registry)))
        with served(settings) as ask:
            page = ask(f"/dead-letters/decoded/0/{offset}").text
        connection.execute("delete from dead_letter where topic = 'decoded'")
    return printed, unescape(page)


def test_avro_is_shown_by_the_schema_that_it_names(incident: Settings, registry: SchemaRegistryServer) -> None:
    value = registry.avro(ORDER, {"id": 2**53 + 1, "raw": b"\x00\xff", "price": Decimal("12.50")})
    for text in shown(incident, registry.url, value, 1):
        assert "Avro" in text
        assert '"id": 9007199254740993' in text
        assert r'"raw": "\\x00ff"' in text
        assert '"price": "12.50"' in text


def test_protobuf_is_shown_by_the_schema_that_it_names(incident: Settings, registry: SchemaRegistryServer) -> None:
    for text in shown(incident, registry.url, registry.protobuf(nested_message()), 2):
        assert "Protobuf" in text
        assert '"order_id": "9007199254740993"' in text
        assert '"at": "1970-01-01T00:00:01Z"' in text


def test_what_has_no_known_schema_is_shown_in_digits(incident: Settings, registry: SchemaRegistryServer) -> None:
    for text in shown(incident, registry.url, b"\0\0\0\x12\x67abc", 3):
        assert "the schema registry doesn't know the value's schema" in text
        assert "00 00 00 12 67 61 62 63" in text


def test_a_registry_that_is_away_keeps_no_value_from_being_shown(incident: Settings) -> None:
    for text in shown(incident, "http://127.0.0.1:9", b"\0\0\0\0\1abc", 4):
        assert "processor.schema_registry.url gave no schema" in text
        assert "00 00 00 00 01 61 62 63" in text


def test_json_has_line_breaks_and_no_character_that_hides_others(incident: Settings) -> None:
    value = json.dumps({"name": "a\u202eb", "id": 1}, ensure_ascii=False).encode()
    for text in shown(incident, "", value, 5):
        assert '"name": "a\\u202eb",\n' in text
        assert f"{PRODUCED_US}, which looks like µs (2023-11-14 22:13:20 UTC): the producer must give ms" in text
