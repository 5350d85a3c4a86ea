"""Typed handlers: which annotations decode a value, what is malformed, and what is refused at the start."""

from __future__ import annotations

import asyncio
import decimal
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from google.protobuf.struct_pb2 import Struct
from pydantic import BaseModel, ConfigDict, Field, field_validator

from processor.handlers.loading import handler_from
from wait_registry.errors import ConfigurationError, MalformedError, TransientError
from wait_registry.handler import Avro, Record
from wait_registry.settings.processor import ProcessorSettings
from waitreg.testing import record

if TYPE_CHECKING:
    from decimal import Decimal

SECRET = "4000-1234"


class Order(BaseModel):
    id: int
    card: str = ""

    @field_validator("card")
    @classmethod
    def _reachable(cls, card: str) -> str:
        if card == "unreachable":
            raise TransientError("the card service is away")
        if card == "unforeseen":
            raise KeyError("no such card")
        return card


class Price(BaseModel):
    model_config = ConfigDict(strict=True)
    amounts: list[decimal.Decimal] = []
    ratio: Annotated[float, Field(strict=False)] = 0.5
    note: str = ""


class Refund(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["refund"]


class Sale(BaseModel):
    kind: Literal["sale"]


class Unfinished(BaseModel):
    of: NeverDefined  # type: ignore[name-defined]  # noqa: F821


@dataclass
class Point:
    x: int


class Handlers:
    """Handlers that keep what they got."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.threads: list[threading.Thread] = []

    def _keep(self, *arguments: Any) -> None:
        self.got.append(arguments)
        self.threads.append(threading.current_thread())

    async def both(self, order: Order, record: Record) -> None:
        self._keep(order, record)

    async def alone(self, order: Order) -> None:
        self._keep(order)

    async def with_default(self, order: Order, note: str = "own") -> None:
        self._keep(order, note)

    def plain(self, order: Order, record: Record) -> None:
        self._keep(order, record)

    async def point(self, point: Point) -> None:
        self._keep(point)

    async def price(self, price: Price) -> None:
        self._keep(price)

    async def optional(self, order: Order | None) -> None:
        self._keep(order)

    async def union(self, change: Annotated[Sale | Refund, Field(discriminator="kind")]) -> None:
        self._keep(change)

    async def message(self, message: Struct | None) -> None:
        self._keep(message)


def call(name: str, given: Record) -> list[Any]:
    """Call the handler of that name once, and return what it got."""
    handlers = Handlers()

    async def once() -> None:
        handler = handler_from(name, getattr(handlers, name), ProcessorSettings(max_in_flight=1))
        await handler.open()
        if handler.slots is not None:
            await handler.slots.acquire()
        await handler.call(given)
        await handler.close()

    asyncio.run(once())
    (arguments,) = handlers.got
    assert (handlers.threads[0] is threading.main_thread()) == (name != "plain")
    return list(arguments)


ORDER = record({"id": 1})
MESSAGE = Struct()
MESSAGE.update({"id": 1})


@pytest.mark.parametrize(
    ("name", "given", "got"),
    [
        ("both", ORDER, [Order(id=1), ORDER]),
        ("plain", ORDER, [Order(id=1), ORDER]),
        ("alone", ORDER, [Order(id=1)]),
        ("with_default", ORDER, [Order(id=1), "own"]),
        ("point", record({"x": 2}), [Point(2)]),
        ("optional", ORDER, [Order(id=1)]),
        ("optional", record(None), [None]),
        ("optional", record(b"null"), [None]),
        ("union", record({"kind": "sale"}), [Sale(kind="sale")]),
        ("message", record(MESSAGE.SerializeToString()), [MESSAGE]),
        ("message", record(b""), [Struct()]),
        ("message", record(None), [None]),
    ],
)
def test_the_handler_gets_what_its_annotation_asks_for(name: str, given: Record, got: list[Any]) -> None:
    assert call(name, given) == got


@pytest.mark.parametrize(
    "number",
    ["12345678901234567.89", "-1.00000000000000000001", "1e-400", "0.1", "1.50", "7", "1234567890123456789", "2E2"],
)
def test_numbers_reach_decimals_exactly(number: str) -> None:
    note = r"12345678901234567.89\", 12345678901234567.89"
    (price,) = call("price", record(rf'{{"amounts": [{number},{number}], "ratio": {number}, "note": "{note}"}}'))
    assert price.amounts == [decimal.Decimal(number)] * 2
    assert price.ratio == float(number)
    assert price.note == note.replace("\\", "")


@pytest.mark.parametrize("value", ['{12345678901234567.89: 1}', '{"amounts": [012345678901234567.89]}',
    '{"amounts": [1e400]}', '{"amounts": [12345678901234567.89.1]}', '"\\"' * 200_000])  # fmt: skip
def test_numbers_that_are_none_stay_malformed(value: str) -> None:
    with pytest.raises(MalformedError, match=r"the value isn't Price"):
        call("price", record(value))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("both", None, "the value is null, not Order; a handler that takes null is annotated Order | None"),
        ("plain", None, "the value is null, not Order"),
        ("both", b"", "the value isn't Order: Invalid JSON: EOF while parsing a value"),
        ("both", b"\xff", "the value isn't Order: Invalid JSON"),
        ("both", b'\0\0\0\0\7{"id": 1}', "begins with the ID of a schema (7), which isn't supported for JSON"),
        ("both", b"[]", "the value isn't Order: Input should be an object"),
        ("both", {"id": SECRET}, "the value isn't Order: id: Input should be a valid integer"),
        ("both", {"id": 1, "card": "unforeseen"}, "the value isn't Order in JSON: KeyError: 'no such card'"),
        ("union", {"kind": "gift"}, "the value isn't Sale | Refund"),
        ("union", {"kind": "refund", "a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}, "; 1 more"),
        ("message", b"\xff\xff", "the value isn't Struct in Protobuf: DecodeError"),
    ],
)
def test_what_can_not_be_decoded_is_malformed_with_the_reason(name: str, value: object, said: str) -> None:
    with pytest.raises(MalformedError) as malformed:
        call(name, record(value))
    assert said in str(malformed.value)
    assert SECRET not in str(malformed.value), "a message goes into logs"


def test_a_retriable_failure_of_a_validator_is_retried() -> None:
    with pytest.raises(TransientError, match="the card service is away"):
        call("both", record({"id": 1, "card": "unreachable"}))


async def number(order: int) -> None: ...
async def raw(value: bytes) -> None: ...
async def listed(orders: list[Order]) -> None: ...
async def mixed(order: Order | Struct) -> None: ...
async def avro_message(order: Annotated[Struct, Avro]) -> None: ...
async def avro(order: Annotated[Order, Avro]) -> None: ...
async def three(order: Order, record: Record, more: object) -> None: ...
async def two_payloads(order: Order, refund: Refund) -> None: ...
async def keyword_only(order: Order, *, record: Record) -> None: ...
async def unresolved(order: Decimal) -> None: ...
async def unfinished(order: Unfinished) -> None: ...


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (number, r"its first parameter 'order' is annotated int; expected Record, a pydantic model, a dataclass"),
        (raw, "is annotated bytes; expected Record"),
        (listed, r"is annotated list\[.*Order\]; expected Record"),
        (mixed, "expected Record"),
        (avro_message, "expected Record"),
        (avro, "schemas are in a schema registry: set processor.schema_registry.url"),
        (three, "takes record, more after its first parameter; expected the record, or nothing"),
        (two_payloads, "takes refund after its first parameter"),
        (keyword_only, "takes record after its first parameter"),
        (unresolved, r"can't be evaluated: NameError: name 'Decimal' is not defined\. Import the types"),
        (unfinished, r"no value can be decoded to Unfinished: .*NeverDefined"),
    ],
)
def test_an_annotation_that_can_not_be_decoded_to_is_refused(handler: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        handler_from("orders:handle", handler, ProcessorSettings())


async def for_the_type_checker(record: Record) -> Decimal | None:
    return None


async def anything(record: Any) -> None: ...


async def unannotated(record):  # type: ignore[no-untyped-def]
    return None


@pytest.mark.parametrize("handler", [for_the_type_checker, anything, unannotated])
def test_a_handler_of_the_record_needs_no_annotation(handler: Any) -> None:
    assert handler_from("orders:handle", handler, ProcessorSettings()).call is handler
