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
from pydantic import BaseModel, SecretStr

from processor.handlers.loading import handler_from
from tests.support.certificates import Authority
from tests.support.http_service import Answer, Call, HttpService
from tests.support.waiting import wait_until
from wait_registry import schema_registry
from wait_registry.errors import ConfigurationError, MalformedError, PermanentError, TransientError
from wait_registry.handler import Avro
from wait_registry.local.ports import LOOPBACK
from wait_registry.settings.processor import ProcessorSettings, SchemaRegistrySettings
from wait_registry.testing import DeadLetter, HandlerTester, record

SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
UNUSABLE = {**SCHEMA, "fields": [{"name": "id", "type": "nothing"}]}
FOUND = Answer(200, {"schema": json.dumps(SCHEMA)})
ORDER = b"\0\0\0\0\1\x04"  # by schema 1, and Avro's 2


class Order(BaseModel):
    id: int


class OrderWithNote(Order):
    note: str


class Kept:
    """A handler that keeps what it got."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    async def asynchronous(self, order: Annotated[Order | None, Avro]) -> None:
        self.got.append(order)

    def plain(self, order: Annotated[Order, Avro] | None) -> None:
        self.got.append(order)

    async def noted(self, order: Annotated[OrderWithNote, Avro]) -> None:
        self.got.append(order)


async def call(handler: Any, value: bytes | None, url: str, **access: Any) -> None:
    settings = ProcessorSettings(schema_registry=SchemaRegistrySettings(url=url, **access))
    opened = handler_from("orders:handle", handler, settings)
    if opened.slots is not None:
        await opened.slots.take()
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
        (
            Answer(200, {"schema": json.dumps("int")}),
            (MalformedError, "the value isn't Order: Input should be a valid dict"),
        ),
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
        (b"", "the value isn't Order in Avro: SerializationError: Expecting data framing"),
        (b'{"id": 1}', "SerializationError: Invalid magic byte"),
        (ORDER[:5] + b"\xff" * 20, "the value isn't Order in Avro"),
    ],
)
async def test_a_value_that_its_schema_does_not_describe_is_malformed(value: bytes, said: str) -> None:
    with HttpService(lambda call: FOUND) as service, pytest.raises(MalformedError, match=said):
        await call(Kept().asynchronous, value, service.address)


async def test_a_value_without_what_the_model_needs_is_malformed() -> None:
    with HttpService(lambda call: FOUND) as service:
        with pytest.raises(MalformedError, match="the value isn't OrderWithNote: note: Field required"):
            await call(Kept().noted, ORDER, service.address)


@pytest.mark.guarantee("P1.29")
@pytest.mark.parametrize("kind", ["asynchronous", "plain"])
async def test_a_registry_that_is_away_or_silent_is_a_retriable_failure(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        settings: dict[str, Any] = {
            "schema_registry": {"url": service.address},
            "handler_timeout_s": 0.2,
            "max_attempts": 1,
        }
        async with HandlerTester(kept.asynchronous, **settings) as tester:
            outcome = await tester.outcome_of(record(ORDER))
    assert isinstance(outcome, DeadLetter)
    assert (outcome.reason, str(outcome.error)) == ("failed", "attempt 1 was over its limit of 0.2 s")
    assert kept.got == []


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_certificate_of_a_registry_is_checked(
    trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
