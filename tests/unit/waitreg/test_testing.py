"""`waitreg.testing`: what a processor would do with a record, found out without Kafka."""

from __future__ import annotations

import asyncio
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from wait_registry.errors import ConfigurationError
from wait_registry.handler import Discard, HandlerResult, PermanentError, Record, TransientError
from waitreg.testing import DeadLetter, Discarded, Done, HandlerTester, Outcome, Retry, outcome_of, record


class Order(BaseModel):
    id: int
    failures: int = 0
    pause_s: float | None = None


class Shop:
    """Fails as often as an order says; opened and closed as a processor does it."""

    calls = 0
    open = False

    async def __aenter__(self) -> Shop:
        Shop.open, Shop.calls = True, 0
        return self

    async def __aexit__(self, *_: object) -> None:
        Shop.open = False

    async def handle(self, order: Order, record: Record) -> HandlerResult:
        assert Shop.open
        Shop.calls += 1
        if order.id == 0:
            raise PermanentError("no such order")
        if order.id < 0:
            return Discard("a test order")
        if Shop.calls <= order.failures:
            raise TransientError("busy", retry_after_s=order.pause_s)
        return None


async def hangs(record: Record) -> None:
    await asyncio.Event().wait()


def plain(record: Record) -> HandlerResult:
    return Discard(f"{record.topic} {record.value!r}")


DELAYS = {"delays": ["10s", "1m"]}


@pytest.mark.parametrize(
    ("value", "settings", "came_from", "kind", "calls"),
    [
        (Order(id=1), {}, None, Done(), 1),
        (Order(id=-1), {}, None, Discarded("a test order"), 1),
        (Order(id=1, failures=2), {}, None, Done(), 3),
        (Order(id=1, failures=3), {}, None, "failed", 3),
        (Order(id=1, failures=3), {"retry": DELAYS}, None, 10, 3),
        (Order(id=1, failures=3), {"retry": DELAYS}, "10s", 60, 3),
        (Order(id=1, failures=3), {"retry": DELAYS}, "1m", "failed", 3),
        (Order(id=1, failures=1, pause_s=30), {"retry": DELAYS}, None, 60, 1),
        (Order(id=1, failures=1, pause_s=30), {}, None, Done(), 2),
        (Order(id=0), {"retry": DELAYS}, None, "failed", 1),
        (b"{}", {"retry": DELAYS}, None, "malformed", 0),
        (None, {}, None, "malformed", 0),
    ],
)
def test_the_outcome_is_that_of_a_processor(
    value: object, settings: dict[str, Any], came_from: str | None, kind: Outcome | str | int, calls: int
) -> None:
    pauses = {"backoff_initial_s": 20, "backoff_max_s": 20}
    began_s = time.monotonic()
    outcome = outcome_of(Shop, record(value), came_from, **{**pauses, **settings})
    assert time.monotonic() - began_s < 10, "no pause was slept"
    match outcome:
        case DeadLetter(reason):
            assert reason == kind
        case Retry(delay_s):
            assert delay_s == kind
        case _:
            assert (outcome, type(outcome)) == (kind, type(kind))
    assert (Shop.calls, Shop.open) == (calls, False)


async def test_an_attempt_over_its_limit_is_cancelled() -> None:
    async with HandlerTester(hangs, handler_timeout_s=0.05, max_attempts=2) as tester:
        outcome = await tester.outcome_of(record())
    assert isinstance(outcome, DeadLetter)
    assert str(outcome.error) == "attempt 2 was over its limit of 0.05 s"


@pytest.mark.parametrize("ordering", ["unordered", "key"])
async def test_records_are_handled_at_the_same_time(ordering: str) -> None:
    async with HandlerTester(plain, max_in_flight=2, ordering=ordering) as tester:
        values = [b"1", b"2", b"3", b"4"]
        outcomes = await asyncio.gather(*(tester.outcome_of(record(value, topic="t")) for value in values))
    assert outcomes == [Discarded(f"t {value!r}") for value in values]


@pytest.fixture
def user_module() -> Iterator[str]:
    sys.modules["handlers_under_test"] = module = types.ModuleType("handlers_under_test")
    module.__dict__.update(plain=plain)
    yield "handlers_under_test"
    del sys.modules["handlers_under_test"]


def test_a_handler_is_named_as_in_the_settings(user_module: str) -> None:
    assert outcome_of(f"{user_module}:plain", record("1")) == Discarded("input b'1'")
    with pytest.raises(ConfigurationError, match="has no 'plian'"):
        outcome_of(f"{user_module}:plian", record())


async def test_a_tester_that_was_not_entered_says_how() -> None:
    with pytest.raises(ConfigurationError, match=r"write: async with HandlerTester\(\.\.\.\)"):
        await HandlerTester(plain).outcome_of(record())


def test_deliveries_of_a_record_share_the_idempotency_key() -> None:
    first, second, other = (
        record(offset=offset, delivery=delivery, timestamp=1) for offset, delivery in ((5, 1), (5, 2), (6, 1))
    )
    assert first.wait_id == first.idempotency_key == second.idempotency_key != second.wait_id
    assert other.idempotency_key != first.idempotency_key
