"""Row 1: Little's law. N calls in flight finish N / mean call per second, if no call waits for another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bench.contenders.flows import (
    AIOKAFKA,
    JVM_WARM_S,
    PARALLEL_CONSUMER,
    PARALLEL_CONSUMER_BY_KEY,
    REGISTRY,
    SHARE_CONSUMER,
    Flow,
    Window,
    contender,
    filled,
)
from bench.contenders.load import SLOW, Mixture, Share, mean_call_s
from bench.harness.row import Bench, Case, Contender, Line, Row

SLOWEST: Final[Mixture] = (Share(1, 60_000), Share(10, 1000), Share(89, 200))
QUICK: Final[Mixture] = (Share(10, 50), Share(90, 10))
IN_FLIGHT: Final = (10, 50, 500, 2000)
SLOWEST_IN_FLIGHT: Final = 500
SLOWEST_CASE: Final = "1 % at 60 s"
# Calls of the first minute, and of another one or so: worked out from N = 500 free slots that fill with slow calls.
SLOWEST_WINDOW: Final = Window(44_000, 66_000, 240.0)
SLOW_TOPIC: Final = "bench.r1.slow"
SLOWEST_TOPIC: Final = "bench.r1.slowest"
SECONDS: Final = 8.0
# How much of the limit is left to a contender that works in batches.
BATCH_SHARE: Final = 0.28
# At which N each is measured: the peers where they differ.
MEASURED: Final[Mapping[Flow, Sequence[int]]] = {
    REGISTRY: IN_FLIGHT,
    PARALLEL_CONSUMER: (50, 500, 2000),
    PARALLEL_CONSUMER_BY_KEY: (500,),
    AIOKAFKA: (50, 2000),
    SHARE_CONSUMER: (50, 500, 2000),
}
# What is registered ahead, and what a slow end takes, in seconds of the fastest contender.
AHEAD_S: Final = 3.5
RECORDS: Final = round(max(IN_FLIGHT) / mean_call_s(SLOW) * (JVM_WARM_S + SECONDS + AHEAD_S))
WHY: Final = "../docs/decisions/0021-what-the-targets-miss.md#littles-law"


def _cases(bench: Bench) -> Sequence[Case]:
    if bench.quick:
        quick = [contender(flow, SLOW_TOPIC, 10, "timed", Window(50, 300, 120.0)) for flow in (REGISTRY, AIOKAFKA)]
        return [Case("N = 10", quick, prepare=filled(SLOW_TOPIC, 500, QUICK))]
    slowest = (SLOWEST_TOPIC, SLOWEST_IN_FLIGHT, "timed", SLOWEST_WINDOW)
    patient = [contender(REGISTRY, *slowest, handler_timeout_s=65)]
    # Theirs takes two minutes more.
    patient += [contender(PARALLEL_CONSUMER, *slowest)] if bench.first_of_full else []
    records = SLOWEST_WINDOW.to_record + 4 * SLOWEST_IN_FLIGHT
    return [
        *(Case(f"N = {n}", _contenders(n), prepare=filled(SLOW_TOPIC, RECORDS, SLOW)) for n in IN_FLIGHT),
        Case(SLOWEST_CASE, patient, prepare=filled(SLOWEST_TOPIC, records, SLOWEST)),
    ]


def _contenders(in_flight: int) -> list[Contender]:
    limit_per_s = in_flight / mean_call_s(SLOW)
    batches_per_s = limit_per_s * BATCH_SHARE

    def timed(flow: Flow) -> Contender:
        expected_per_s = batches_per_s if flow is AIOKAFKA else limit_per_s
        return contender(flow, SLOW_TOPIC, in_flight, "timed", Window.lasting(expected_per_s, flow.warm_s, SECONDS))

    return [timed(flow) for flow, counts in MEASURED.items() if in_flight in counts]


def _share(case: str, name: str) -> Line:
    least = 0.99 if name == REGISTRY.name else None
    return Line(f"Share of the limit, {case}: {name}", (case, name, "share_of_limit"), least=least, why=WHY)


LINES: Final = (
    *(_share(f"N = {count}", REGISTRY.name) for count in IN_FLIGHT),
    _share(SLOWEST_CASE, REGISTRY.name),
    *(_share(f"N = {counts[-1]}", flow.name) for flow, counts in list(MEASURED.items())[1:]),
    _share(SLOWEST_CASE, PARALLEL_CONSUMER.name),
)

ROW: Final = Row(1, "Little's law", _cases, LINES)
