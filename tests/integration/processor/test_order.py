"""O1 on a real broker: a record is called when the earlier ones of its key are settled, while partitions move."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.integration.processor.scenario import PROTOCOLS, ScenarioFactory
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError, PermanentError, TransientError
from wait_registry.handler import Record
from wait_registry.settings.processor import Ordering
from wait_registry.telemetry.metrics import PROCESSOR_ASSIGNED

KEYS = 6
SOON = {"kafka.librdkafka": {"heartbeat.interval.ms": 300}}
ORDERED: dict[str, Any] = {
    "registration": "off",
    "max_in_flight": 8,
    "commit_interval_s": 0.1,
    "backoff_initial_s": 0.01,
}
Lane = tuple[int, bytes]


@dataclass
class Watched:
    """A handler that notes what is called out of order, by any process.

    Some records fail once, and some for good.
    """

    ordering: Ordering
    settled: dict[Lane, list[int]] = field(default_factory=lambda: defaultdict(list))
    running: Counter[Lane] = field(default_factory=Counter)
    calls: Counter[tuple[int, int]] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    async def __call__(self, record: Record) -> None:
        lane = self.begin(record)
        try:
            await asyncio.sleep(0.03)
            self.end(record, lane)
        finally:
            with self.lock:
                self.running[lane] -= 1

    def begin(self, record: Record) -> Lane:
        lane = (record.partition, record.key if self.ordering is Ordering.KEY and record.key else b"")
        with self.lock:
            self.calls[record.partition, record.offset] += 1
            if self.running[lane]:
                self.problems.append(f"{record.offset} is called while another call of {lane} runs")
            self.running[lane] += 1
            number = int(record.value or b"")
            if number != len(self.settled[lane]) and number not in self.settled[lane]:
                self.problems.append(f"{number} of {lane} is called after {self.settled[lane][-3:]}")
        return lane

    def end(self, record: Record, lane: Lane) -> None:
        number = int(record.value or b"")
        with self.lock:
            first = self.calls[record.partition, record.offset] == 1
            if (number % 7 != 3 or not first) and number not in self.settled[lane]:
                self.settled[lane].append(number)
        if number % 7 == 3 and first:
            raise TransientError("its first call fails")
        if number % 11 == 5:
            raise PermanentError("it fails for good")


def records_of(ordering: Ordering, partitions: int, count: int, from_number: int = 0) -> list[Outgoing]:
    """Return records that are numbered within their lane."""
    keys = [b"key-%d" % number for number in range(KEYS)] if ordering is Ordering.KEY else [b"key"]
    return [
        Outgoing(b"%d" % number, key, partition=partition)
        for number in range(from_number, from_number + count)
        for key in keys
        for partition in range(partitions)
    ]


@pytest.mark.guarantee("O1.1", "O1.3")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("ordering", [Ordering.KEY, Ordering.PARTITION])
def test_the_order_holds_in_rebalances(ordering: Ordering, protocol: str, processor_scenario: ScenarioFactory) -> None:
    watched = Watched(ordering)
    own: dict[str, Any] = {**ORDERED, "ordering": ordering.value, **PROTOCOLS[protocol]}
    at = processor_scenario(watched, 4, SOON if protocol != "KIP-848" else {}, **own)
    lanes, of_each = (4 * KEYS, 40) if ordering is Ordering.KEY else (4, 240)
    at.produce(records_of(ordering, 4, of_each))
    first = at.start()
    wait_until(lambda: len(watched.calls) > 20, what="the first calls")
    second = at.start()
    wait_until(lambda: sum(second.values(PROCESSOR_ASSIGNED)) > 0, 180, "partitions of the second")
    at.produce(records_of(ordering, 4, of_each // 4, from_number=of_each))
    wait_until(lambda: second.done > 0, 180, "a call by the second")
    first.stop()
    wait_until(lambda: sum(map(len, watched.settled.values())) == of_each * 5 // 4 * lanes, 180, "all records")
    second.stop()
    assert watched.problems == []
    assert set(watched.running.values()) == {0}


@pytest.mark.guarantee("O1.2")
def test_a_plain_call_over_its_limit_keeps_its_key(processor_scenario: ScenarioFactory) -> None:
    spans: list[tuple[bytes, float, float]] = []

    def handler(record: Record) -> None:
        began_s = time.monotonic()
        time.sleep(1.0 if record.value == b"slow" else 0.01)
        spans.append((record.key or b"", began_s, time.monotonic()))

    at = processor_scenario(handler, 1, **ORDERED, ordering="key", handler_timeout_s=0.2, max_attempts=1)
    at.produce([Outgoing(value, key) for value in (b"slow", b"quick") for key in (b"a", b"b")])
    at.run_once()
    assert len(spans) == 4
    ended = {key: end_s for key, _, end_s in spans[:2]}
    assert all(began_s >= ended[key] for key, began_s, _ in spans[2:])


@pytest.mark.guarantee("O1.4")
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"registration": "eager"}, "Set processor.registration=off"),
        ({"registration": "deferred"}, "Set processor.registration=off"),
        ({"registration": "off", "retry": {"delays": ["1s"]}}, "processor.retry.allow_reordering=true"),
    ],
)
def test_what_breaks_order_is_refused(settings: dict[str, Any], why: str, processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(Watched(Ordering.KEY), 1, **{"ordering": "key", **settings})
    with pytest.raises(ConfigurationError, match=why):
        at.run_once()
