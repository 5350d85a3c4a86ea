"""Row 1: Little's law. N calls in flight finish N / mean call per second, if no call waits for another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final
from uuid import uuid4

from bench.contenders import flows
from bench.contenders.flows import Flow, Window, contender, filled, flow_arguments, measure_flow
from bench.contenders.late_records import publishing_once_assigned
from bench.contenders.load import PARTITIONS, SLOW, Mixture, Share, create, delete, held, mean_call_s
from bench.harness.row import Bench, Case, Contender, Figures, Line, Row

SLOWEST: Final[Mixture] = (Share(1, 60_000), Share(10, 1000), Share(89, 200))
QUICK: Final[Mixture] = (Share(10, 50), Share(90, 10))
IN_FLIGHT: Final = (10, 50, 500, 2000)
CASES: Final = tuple(f"N = {count}" for count in IN_FLIGHT)
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
    flows.REGISTRY: IN_FLIGHT,
    flows.PARALLEL_CONSUMER: (2000,),
    flows.PARALLEL_CONSUMER_BY_KEY: (500,),
    flows.AIOKAFKA: (2000,),
    flows.SHARE_CONSUMER: (2000,),
}
# What is registered ahead, and what a slow end takes, in seconds of the fastest contender.
AHEAD_S: Final = 3.5
# What is published beyond the window in deferred mode, besides three times N, and worked off before it is counted, s.
BEYOND: Final = 50
SETTLE_S: Final = 1
REGISTERED: Final = "registered_share"
RECORDS: Final = round(max(IN_FLIGHT) / mean_call_s(SLOW) * (flows.JVM_WARM_S + SECONDS + AHEAD_S))
WHY: Final = "../docs/decisions/0021-what-the-targets-miss.md#littles-law"


def _cases(bench: Bench) -> Sequence[Case]:
    if bench.quick:
        eager = contender(flows.REGISTRY, SLOW_TOPIC, 10, "timed", Window(50, 300, 120.0))
        deferred = Contender(flows.DEFERRED.name, partial(_measure_deferred, 10, Window(20, 60, 60.0)))
        return [Case(CASES[0], [eager, deferred], prepare=filled(SLOW_TOPIC, 500, QUICK))]
    slowest = (SLOWEST_TOPIC, SLOWEST_IN_FLIGHT, "timed", SLOWEST_WINDOW)
    patient = [contender(flows.REGISTRY, *slowest, handler_timeout_s=65)]
    # Theirs takes two minutes more.
    patient += [contender(flows.PARALLEL_CONSUMER, *slowest)] if bench.first_of_full else []
    records = SLOWEST_WINDOW.to_record + 4 * SLOWEST_IN_FLIGHT
    return [
        *(Case(f"N = {n}", _contenders(n), prepare=filled(SLOW_TOPIC, RECORDS, SLOW)) for n in IN_FLIGHT),
        Case(SLOWEST_CASE, patient, prepare=filled(SLOWEST_TOPIC, records, SLOWEST)),
    ]


def _measure_deferred(in_flight: int, window: Window, bench: Bench) -> Figures:
    topic = f"bench.r1.deferred-{uuid4().hex[:8]}"
    arguments = flow_arguments(bench, topic, in_flight, "timed", window, keep_topics=True, idle_s=SETTLE_S)
    wait_topic, records = f"{arguments.group}.wait", window.to_record + 3 * in_flight + BEYOND
    try:
        with publishing_once_assigned(bench.kafka, topic, arguments.group, records, SLOW):
            figures = measure_flow(flows.DEFERRED, bench, arguments)
        # Two entries per record, once all are settled.
        registered = held(create(bench.kafka, topic), wait_topic, PARTITIONS) / 2
        return {**figures, REGISTERED: registered / records}
    finally:
        delete(bench.kafka, topic, wait_topic, f"{arguments.group}.dlq")


def _contenders(in_flight: int) -> list[Contender]:
    limit_per_s = in_flight / mean_call_s(SLOW)
    batches_per_s = limit_per_s * BATCH_SHARE

    def timed(flow: Flow) -> Contender:
        expected_per_s = batches_per_s if flow is flows.AIOKAFKA else limit_per_s
        return contender(flow, SLOW_TOPIC, in_flight, "timed", Window.lasting(expected_per_s, flow.warm_s, SECONDS))

    window = Window.lasting(limit_per_s, flows.DEFERRED.warm_s, SECONDS)
    deferred = Contender(flows.DEFERRED.name, partial(_measure_deferred, in_flight, window))
    return [deferred, *(timed(flow) for flow, counts in MEASURED.items() if in_flight in counts)]


def _share(case: str, name: str) -> Line:
    least = 0.99 if name in (flows.REGISTRY.name, flows.DEFERRED.name) else None
    return Line(f"Share of the limit, {case}: {name}", (case, name, "share_of_limit"), least=least, why=WHY)


LINES: Final = (
    *(_share(case, flow.name) for flow in (flows.REGISTRY, flows.DEFERRED) for case in CASES),
    *(
        Line(f"Share registered, {case}: deferred", (case, flows.DEFERRED.name, REGISTERED), most=0.12, why=WHY)
        for case in CASES
    ),
    _share(SLOWEST_CASE, flows.REGISTRY.name),
    *(_share(f"N = {counts[-1]}", flow.name) for flow, counts in list(MEASURED.items())[1:]),
    _share(SLOWEST_CASE, flows.PARALLEL_CONSUMER.name),
)

ROW: Final = Row(1, "Little's law", _cases, LINES)
