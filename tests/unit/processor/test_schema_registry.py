"""Values whose schemas are in a registry: each schema is asked for once, and what an answer says about the value."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from pydantic import BaseModel, SecretStr

from processor.handlers.loading import handler_from
from tests.support.certificates import Authority
from tests.support.http_service import Answer, Call, HttpService
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError, MalformedError, PermanentError, TransientError
from wait_registry.handler import Avro
from wait_registry.schemas import registry as schema_registry
from wait_registry.settings.processor import ProcessorSettings, SchemaRegistrySettings
from waitreg.local.ports import LOOPBACK
from waitreg.testing import DeadLetter, HandlerTester, record

SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
UNUSABLE = {**SCHEMA, "fields": [{"name": "id", "type": "nothing"}]}
FOUND = Answer(200, {"schema": json.dumps(SCHEMA)})
ORDER = b"\0\0\0\0\1\x04"  # by schema 1, and Avro's 2


class Order(BaseModel):
    id: int


class Kept:
    """A handler that keeps what it got."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    async def asynchronous(self, order: Annotated[Order | None, Avro]) -> None:
        self.got.append(order)

    def plain(self, order: Annotated[Order, Avro] | None) -> None:
        self.got.append(order)


async def call(handler: Any, value: bytes | None, url: str, **access: Any) -> None:
    settings = ProcessorSettings(schema_registry=SchemaRegistrySettings(url=url, **access))
    opened = handler_from("orders:handle", handler, settings)
    if opened.slots is not None:
        await opened.slots.acquire()
    try:
        await opened.call(record(value))
    finally:
        await opened.close()


@pytest.mark.parametrize("kind", ["asynchronous", "plain"])
async def test_a_schema_is_looked_up_once(kind: str) -> None:
    kept = Kept()
    with HttpService(lambda call: FOUND) as service:
        access = {"url": service.address}
        async with HandlerTester(getattr(kept, kind), schema_registry=access) as tester:
            for value in (ORDER, ORDER, None):
                await tester.outcome_of(record(value))
    assert kept.got == [Order(id=2), Order(id=2), None]
    assert [call.path for call in service.calls] == ["/schemas/ids/1"]


async def test_a_lookup_does_not_hold_up_the_event_loop() -> None:
    kept, loop_runs = Kept(), threading.Event()

    def answer(call: Call) -> Answer:
        return FOUND if loop_runs.wait(60) else Answer(500)

    with HttpService(answer) as service:
        calling = asyncio.create_task(call(kept.asynchronous, ORDER, service.address))
        await asyncio.to_thread(wait_until, lambda: service.calls or calling.done())
        loop_runs.set()
        await calling
    assert kept.got == [Order(id=2)]


Raised = tuple[type[Exception], str]
UNKNOWN = {"error_code": 40403, "message": "Schema not found"}


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (Answer(404, UNKNOWN), (MalformedError, "doesn't know the value's schema: Schema not found")),
        (Answer(404, {"error_code": 40401, "message": "no subject"}), (TransientError, "no subject")),
        (Answer(404, "another server's"), (TransientError, "gave no schema: SchemaRegistryError")),
        (Answer(401, {"error_code": 40101}), (TransientError, "HTTP status code 401")),
        (Answer(500, {"error_code": 50001, "message": "down"}), (TransientError, "down")),
        (Answer(503), (TransientError, "HTTP status code 503")),
        (Answer(200, "a login page"), (TransientError, "gave no schema")),
        (Answer(200, {"schema": json.dumps(UNUSABLE)}), (MalformedError, "the value isn.t Order in Avro")),
        (Answer(200, {"schema": json.dumps("int")}), (MalformedError, "isn't Order: Input should be a valid dict")),
    ],
)
@pytest.mark.guarantee("P1.29")
@pytest.mark.parametrize("kind", ["asynchronous", "plain"])
async def test_a_record_is_malformed_only_if_its_schema_is_unknown(answer: Answer, raised: Raised, kind: str) -> None:
    kept = Kept()
    with HttpService(lambda call: answer) as service:
        with pytest.raises(raised[0], match=raised[1]) as failed:
            await call(getattr(kept, kind), ORDER, service.address)
    assert isinstance(failed.value, PermanentError) == (raised[0] is MalformedError)
    assert (kept.got, len(service.calls)) == ([], 1)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "the value doesn't begin with the ID of a schema"),
        (b'{"id": 1}', "the value doesn't begin with the ID of a schema"),
        (ORDER[:5] + b"\xff" * 20, "the value isn't Order in Avro"),
    ],
)
async def test_a_value_that_its_schema_does_not_describe_is_malformed(value: bytes, said: str) -> None:
    with HttpService(lambda call: FOUND) as service, pytest.raises(MalformedError, match=said):
        await call(Kept().asynchronous, value, service.address)


NODE = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}


class Node(BaseModel):
    next: Node | None


@pytest.mark.parametrize(("levels", "outcome"), [(100, "Done"), (5_000, "malformed")])
async def test_deep_avro_is_decoded_or_malformed(levels: int, outcome: str) -> None:
    async def handle(node: Annotated[Node, Avro]) -> None: ...

    with HttpService(lambda call: Answer(200, {"schema": json.dumps(NODE)})) as service:
        async with HandlerTester(handle, schema_registry={"url": service.address}) as tester:
            found = await tester.outcome_of(record(b"\0\0\0\0\7" + b"\2" * (levels - 1) + b"\0"))
    assert outcome == (found.reason if isinstance(found, DeadLetter) else type(found).__name__)


def with_references(call: Call) -> Answer:
    """Answer with a schema that refers to two others, which both refer to a fourth."""
    fields = {"1": {"id": "int", "b": "B", "c": "C"}, "B": {"d": "D"}, "C": {"d": "D"}, "D": {"id": "int"}}
    asked = call.path.split("/")[-3 if "versions" in call.path else -1]
    schema = {**SCHEMA, "name": asked.replace("1", "Order"), "fields": []}
    schema["fields"] = [{"name": name, "type": kind} for name, kind in fields[asked].items()]
    named = [{"name": kind, "subject": kind, "version": 1} for kind in fields[asked].values() if kind in fields]
    return Answer(200, {"schema": json.dumps(schema), "references": named, "subject": asked, "version": 1, "id": 9})


async def test_what_a_schema_refers_to_is_looked_up_once() -> None:
    kept = Kept()
    with HttpService(with_references) as service:
        await call(kept.asynchronous, ORDER + b"\2\2", service.address)
    assert kept.got == [Order(id=2)]
    asked = sorted(one.path.partition("?")[0] for one in service.calls)
    assert asked == ["/schemas/ids/1", *(f"/subjects/{name}/versions/1" for name in "BCD")]


@pytest.mark.parametrize("value", [ORDER, b"\4"])
async def test_a_schema_id_in_a_header_is_named_without_a_lookup(value: bytes) -> None:
    given = record(value, headers=(("__value_schema_id", b"\0\0\0\0\1"),))
    with HttpService(lambda call: FOUND) as service:
        async with HandlerTester(Kept().asynchronous, schema_registry={"url": service.address}) as tester:
            outcome = await tester.outcome_of(given)
    assert isinstance(outcome, DeadLetter)
    assert str(outcome.error).startswith("the schema's ID is in the header __value_schema_id, which isn't supported")
    assert service.calls == []


def test_a_time_outside_of_the_calendar_is_shown_as_it_is_written() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", syntax="proto3")
    file.dependency.append(timestamp_pb2.DESCRIPTOR.name)
    field = file.message_type.add(name="T").field.add(name="at", number=1, type=11, label=1)
    field.type_name = ".google.protobuf.Timestamp"
    schema = base64.b64encode(file.SerializeToString()).decode()
    at = timestamp_pb2.Timestamp(seconds=2**62).SerializeToString()
    with HttpService(lambda call: Answer(200, {"schema": schema, "schemaType": "PROTOBUF"})) as service:
        registry = schema_registry.SchemaRegistry(SchemaRegistrySettings(url=service.address))
        found = registry.content(b"\0\0\0\0\1\0\n" + bytes([len(at)]) + at)
    assert found == ("Protobuf", ["at {", f"  seconds: {2**62}", "}"])


@pytest.mark.guarantee("P1.29")
@pytest.mark.parametrize("kind", ["asynchronous", "plain"])
async def test_a_registry_without_an_answer_is_a_retriable_failure(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    monkeypatch.setattr(schema_registry, "REQUEST_LIMIT_S", 0.1)
    with HttpService(lambda call: Answer(held_back=True)) as service:
        address = service.address
        with pytest.raises(TransientError, match="gave no schema: ReadTimeout"):
            await call(getattr(kept, kind), ORDER, address)
    with pytest.raises(TransientError, match=r"gave no schema: ConnectError: .*refused"):
        await call(getattr(kept, kind), ORDER, address)


async def test_the_registry_gets_user_and_password() -> None:
    with HttpService(lambda call: FOUND) as service:
        await call(Kept().asynchronous, ORDER, service.address, username="shop", password=SecretStr("s:ecret"))
    (asked,) = service.calls
    assert asked.headers["Authorization"] == f"Basic {base64.b64encode(b'shop:s:ecret').decode()}"


async def test_an_attempt_that_is_over_its_limit_does_not_wait_for_the_registry() -> None:
    kept = Kept()
    with HttpService(lambda call: Answer(held_back=True)) as service:
        limits: dict[str, Any] = {"handler_timeout_s": 0.2, "max_attempts": 1}
        async with HandlerTester(kept.asynchronous, schema_registry={"url": service.address}, **limits) as tester:
            outcome = await tester.outcome_of(record(ORDER))
    assert isinstance(outcome, DeadLetter)
    assert (outcome.reason, str(outcome.error)) == ("failed", "attempt 1 was over its limit of 0.2 s")
    assert kept.got == []


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_registry_must_be_trusted(trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, kept = Authority(tmp_path, "the-stores-authority"), Kept()
    shown = (authority if trusted else Authority(tmp_path, "another")).issue("registry", f"IP:{LOOPBACK}")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(shown.certificate_file, shown.key_file)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate_file))
    with HttpService(lambda call: FOUND, tls) as service:
        if trusted:
            await call(kept.asynchronous, ORDER, service.address)
        else:
            with pytest.raises(TransientError, match="certificate verify failed"):
                await call(kept.asynchronous, ORDER, service.address)
    assert len(kept.got) == len(service.calls) == trusted


def unusable(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    return "processor.schema_registry can't be used: FileNotFoundError"


def missing_extra(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka.schema_registry", None)
    return r"isn't installed: .*\. Fix: pip install 'wait-registry\[schema-registry\]'"


@pytest.mark.parametrize("spoil", [unusable, missing_extra])
async def test_a_registry_that_can_not_be_used_is_refused_at_the_start(
    spoil: Callable[[pytest.MonkeyPatch], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=spoil(monkeypatch)):
        await call(Kept().asynchronous, ORDER, "https://schemas.example")
