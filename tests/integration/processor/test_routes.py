"""Records take their route; a blocked one doesn't stop others, and a call that blocks is cancelled by choice (P7)."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.integration.processor.running import Processors, RunningProcessor
from tests.integration.processor.scenario import Gate, ProcessorScenario, ScenarioFactory
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Record, TransientError
from wait_registry.telemetry.metrics import (
    PROCESSOR_BLOCKED_CANCELLED,
    PROCESSOR_LONG_CALLS,
    PROCESSOR_ROUTE_FREE_SLOTS,
    Metric,
)

EXPRESS = (("shipping", b"express"),)


@dataclass
class Shop:
    """Three handlers: of express orders, of other orders, and of what takes no route."""

    express: list[bytes] = field(default_factory=list)
    others: list[bytes | None] = field(default_factory=list)
    orders: Gate = field(default_factory=Gate)

    async def handle_express(self, record: Record) -> None:
        """Fail once, so that a retry topic has the record too."""
        if record.delivery == 1:
            raise TransientError("come again")
        self.express.append(record.value or b"")

    async def handle_others(self, record: Record) -> None:
        """Be done."""
        self.others.append(record.value)


@dataclass(frozen=True)
class ShopFactory:
    """Makes a scenario with two topics and these handlers."""

    scenarios: ScenarioFactory
    processors: Processors
    names: Names

    def __call__(self, shop: Shop, **own: Any) -> ProcessorScenario:
        orders, refunds = self.names("orders"), self.names("refunds")
        handler = self.processors.handler
        routes = [
            {
                "match": {"topic": orders, "header": "shipping", "value": "express"},
                "handler": handler(shop.handle_express),
            },
            {"match": {"topic": orders}, "handler": handler(shop.orders), "max_in_flight": 2},
        ]
        section = {"topics": (orders, refunds), "routes": routes, "max_in_flight": 4, **own}
        return self.scenarios(shop.handle_others, 2, **section)


@pytest.fixture
def shops(processor_scenario: ScenarioFactory, processors: Processors, names: Names) -> ShopFactory:
    return ShopFactory(processor_scenario, processors, names)


@pytest.mark.guarantee("P7.19")
@pytest.mark.parametrize("mode", ["eager", "deferred", "off"])
def test_a_blocked_route_does_not_stop_the_others(shops: ShopFactory, mode: str) -> None:
    shop = Shop()
    at = shops(shop, registration=mode, retry={"delays": ("1s",)}, max_attempts=1)
    at.produce([b"order"] * 60)
    running = at.start()
    wait_until(lambda: sum(shop.orders.calls.values()) == 2, what="the calls of the blocked route")
    at.produce([Outgoing(b"express %d" % n, headers=EXPRESS) for n in range(20)])
    at.topics.produce(at.settings.processor.topics[1], [b"refund"] * 20)
    wait_until(lambda: len(shop.express) == 20 and len(shop.others) == 20, 180, "the records of the other routes")
    assert sum(shop.orders.calls.values()) == 2
    assert running.values(PROCESSOR_ROUTE_FREE_SLOTS) == [0]
    shop.orders.opened.set()
    wait_until(lambda: running.done == 100, 180, "all records")
    running.stop()
    assert sorted(shop.express) == sorted(b"express %d" % n for n in range(20))
    assert shop.others == [b"refund"] * 20
    assert at.letters() == []


@pytest.mark.guarantee("P7.19")
def test_a_thread_over_its_limit_keeps_the_slot_of_its_route(
    processor_scenario: ScenarioFactory, processors: Processors, names: Names
) -> None:
    lock, running, most = threading.Lock(), 0, 0

    def slow(record: Record) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.5)
        with lock:
            running -= 1

    routes = [{"handler": processors.handler(slow), "max_in_flight": 1}]
    at = processor_scenario("", 1, routes=routes, handler_timeout_s=0.1, max_attempts=1)
    at.produce([b"a", b"b", b"c"])
    at.run_once()
    assert most == 1


def test_the_start_names_the_route_whose_handler_is_wrong(shops: ShopFactory) -> None:
    at = shops(Shop(), routes=[{"match": {"header": "a", "value": "b"}, "handler": "json:nothing"}])
    with pytest.raises(ConfigurationError, match=r"processor.routes\[0\]: handler 'json:nothing': 'json' has no"):
        at.run_once()


BLOCKED_AFTER_S = 0.5
SLOW: dict[str, Any] = {"handler_timeout_s": 600, "blocked_after_s": BLOCKED_AFTER_S, "max_in_flight": 1}


async def hangs(record: Record) -> None:
    """Never answer some records."""
    if record.value == b"hang":
        await asyncio.sleep(3600)


def value(running: RunningProcessor, metric: Metric) -> float | None:
    return next(iter(running.values(metric)), None)


@pytest.mark.guarantee("P7.18")
@pytest.mark.parametrize("mode", ["eager", "off"])
def test_records_of_blocked_calls_are_dead_lettered(processor_scenario: ScenarioFactory, mode: str) -> None:
    at = processor_scenario(hangs, 1, registration=mode, cancel_blocked=True, **SLOW, ttl_s=100_000)
    at.produce([b"fine", b"fine", b"hang", b"fine", b"hang", b"fine"])
    running = at.start()
    wait_until(lambda: running.done == 4, 120, "the records behind the blocked ones")
    assert value(running, PROCESSOR_BLOCKED_CANCELLED) == 2
    running.stop()
    letters = at.letters()
    assert [letter.value for letter in letters] == [b"hang", b"hang"]
    assert [dict(letter.headers)["DLQ_REASON"] for letter in letters] == [b"blocked", b"blocked"]
    messages = [dict(letter.headers)["DLQ_ERROR_MESSAGE"] or b"" for letter in letters]
    assert all(b"held 1 of 1 worker slots" in message for message in messages)
    assert at.committed() == [6]


def test_a_blocked_call_is_only_reported_by_default(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(hangs, 1, registration="off", **SLOW)
    at.produce([b"fine", b"hang", b"fine"])
    running = at.start()
    wait_until(lambda: value(running, PROCESSOR_LONG_CALLS) == 1, what="a long call")
    assert value(running, PROCESSOR_BLOCKED_CANCELLED) == 0
    assert running.done == 1
    running.stop()


@pytest.mark.parametrize("ordering", ["unordered", "key"])
def test_cancelling_calls_in_threads_is_refused(ordering: str, processor_scenario: ScenarioFactory) -> None:
    def plain(record: Record) -> None:
        """Be done."""

    at = processor_scenario(plain, 1, cancel_blocked=True, ordering=ordering, registration="off")
    with pytest.raises(
        ConfigurationError, match=r"run in threads, which can't be cancelled. Make the handler an async"
    ):
        at.start().join()
