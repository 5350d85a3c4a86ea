"""Typed handlers on a real broker and a real schema registry: what is decoded, malformed, or waits for the registry."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from pydantic import BaseModel

from tests.integration.processor.scenario import ScenarioFactory
from tests.support.kafka_io import Outgoing
from tests.support.network import Link
from tests.support.schema_registry import registry_url, running_schema_registry
from tests.support.waiting import wait_until
from wait_registry.handler import Avro, Record

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}'
UNKNOWN_ID = struct.pack(">bIb", 0, 4711, 2)
HEADERS = (("name", b"value"), ("name", None))


class Order(BaseModel):
    id: int


def _order_message() -> Any:
    """Return a Protobuf message class, made as `protoc` makes it."""
    file = descriptor_pb2.FileDescriptorProto(name="orders.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="OrderMessage")
    message.field.add(name="id", number=1, type=5, label=1)  # an int32
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.OrderMessage"))


OrderMessage = _order_message()


class Kept:
    """Handlers that keep the IDs of the orders that they got."""

    def __init__(self) -> None:
        self.got: list[int | None] = []

    async def json(self, order: Order, record: Record) -> None:
        assert record.key is not None
        self.got.append(order.id)

    async def avro(self, order: Annotated[Order, Avro]) -> None:
        self.got.append(order.id)

    def protobuf(self, order: OrderMessage) -> None:  # type: ignore[valid-type]
        self.got.append(order.id)  # type: ignore[attr-defined]


@pytest.mark.guarantee("P1.28")
@pytest.mark.parametrize("mode", ["eager", "deferred", "off"])
def test_what_cannot_be_decoded_is_dead_lettered_without_a_call(processor_scenario: ScenarioFactory, mode: str) -> None:
    kept = Kept()
    delays = {"processor.retry.delays": ("1s",)}
    at = processor_scenario(kept.json, 1, delays, registration=mode)
    bad = [Outgoing(value, b"bad", HEADERS) for value in (b'{"id": "x"}', b"\xff", b"", None)]
    at.produce([Outgoing(b'{"id": 1}', b"1"), *bad, Outgoing(b'{"id": 2}', b"2")])
    running = at.run_once()
    assert Counter(kept.got) == Counter([1, 2])
    letters = at.letters()
    assert {letter.value for letter in letters} == {one.value for one in bad}
    for letter in letters:
        assert (letter.key, letter.headers[:2], letter.text("DLQ_REASON")) == (b"bad", HEADERS, "malformed")
        assert letter.text("DLQ_ERROR_CLASS") == "wait_registry.errors.MalformedError"
    said = {letter.value: letter.text("DLQ_ERROR_MESSAGE") for letter in letters}
    assert said[b'{"id": "x"}'].startswith("the value isn't Order: id: Input should be a valid integer")
    assert said[None].startswith("the value is null, not Order")
    assert running.settled == {"done": 2, "dead_lettered": 4}
    assert running.stats.dead_letters == {"malformed": 4}
    assert at.committed() == [6]


@pytest.mark.guarantee("P1.29")
@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_records_wait_for_an_absent_registry(processor_scenario: ScenarioFactory, tmp_path: Path, kind: str) -> None:
    kept = Kept()
    with running_schema_registry(tmp_path) as registry, Link(("127.0.0.1", registry.port)) as link:
        value = registry.avro(ORDER, {"id": 1}) if kind == "avro" else registry.protobuf(OrderMessage(id=1))
        link.refuse()
        attempts: dict[str, Any] = {"max_attempts": 100, "backoff_max_s": 1, "handler_timeout_s": 5}
        access = {"processor.schema_registry.url": registry_url(link.port)}
        at = processor_scenario(getattr(kept, kind), 1, access, **attempts)
        at.produce([value, UNKNOWN_ID, b"no schema", Outgoing(None, b"null")])
        running = at.start()
        wait_until(lambda: running.stats.attempts["error"] > 6, what="attempts without a schema registry")
        # Without a registry only what needs none has an outcome.
        assert kept.got == []
        link.allow()
        wait_until(lambda: sum(running.settled.values()) == 4, what="the outcomes")
        running.stop()
    assert kept.got == [1]
    assert running.settled == {"done": 1, "dead_lettered": 3}
    assert {letter.value: letter.text("DLQ_REASON") for letter in at.letters()} == dict.fromkeys(
        [UNKNOWN_ID, b"no schema", None], "malformed"
    )
