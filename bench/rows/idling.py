"""Row 3: what a processor takes while it does little: memory, start, latency, idling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bench.contenders import flows
from bench.contenders.flows import Flow, Window, contender, filled, warm_up
from bench.contenders.load import SLOW, mean_call_s
from bench.contenders.trickle import Trickle, case_name, trickling
from bench.harness.row import Bench, Case, Contender, Line, Row

MEMORY: Final = "memory"
LONG_MEMORY: Final = "memory, ten minutes"
START: Final = "start-up"
IDLE: Final = "idle"
MEMORY_TOPIC: Final = "bench.r3.memory"
FEW_TOPIC: Final = "bench.r3.few"
MEMORY_IN_FLIGHT: Final = 2000
MEMORY_PER_S: Final = MEMORY_IN_FLIGHT / mean_call_s(SLOW)
IN_FLIGHT: Final = 50
WARM_S: Final = 5.0
MEMORY_S: Final = 60.0
LONG_S: Final = 600.0
PEER_S: Final = 15.0
FEW: Final = 400
PER_S: Final = 100
STEADY: Final = case_name(PER_S)
AHEAD_S: Final = 4.0
OURS: Final = flows.REGISTRY.name
TRICKLING: Final = (flows.REGISTRY, flows.DEFERRED, flows.NOT_GATHERING, flows.PARALLEL_CONSUMER, flows.AIOKAFKA)
MODES: Final = (flows.REGISTRY, flows.DEFERRED, flows.OFF)


def _cases(bench: Bench) -> Sequence[Case]:
    # Not for its rate: how long it runs doesn't matter.
    start = contender(flows.REGISTRY, FEW_TOPIC, IN_FLIGHT, "noop", Window(1, FEW // 2, 90.0, least_s=0))
    idle_s = bench.size(2, 20, 40)
    idle = contender(flows.REGISTRY, FEW_TOPIC, IN_FLIGHT, "noop", Window(1, FEW, 90.0, least_s=0), idle_s=idle_s)
    trickle = Trickle(PER_S, bench.size(2, 10), bench.size(1, 20, 40))
    long = Case(LONG_MEMORY, [_memory(flows.REGISTRY, LONG_S)], prepare=_fill_memory(LONG_S))
    quick = contender(flows.REGISTRY, MEMORY_TOPIC, 20, "timed", Window(20, 200, 90.0))
    memory = (
        [quick]
        if bench.quick
        else [*(_memory(flow, MEMORY_S) for flow in MODES), _memory(flows.PARALLEL_CONSUMER, PEER_S)]
    )
    return [
        Case(MEMORY, memory, prepare=filled(MEMORY_TOPIC, 600) if bench.quick else _fill_memory(MEMORY_S)),
        *([long] if bench.first_of_full else []),
        Case(START, [start], turns=bench.size(1, 3), prepare=filled(FEW_TOPIC, FEW)),
        Case(STEADY, [trickling(flow, trickle) for flow in TRICKLING[: bench.size(2, 4, 5)]]),
        Case(IDLE, [idle], prepare=filled(FEW_TOPIC, FEW)),
    ]


def _memory(flow: Flow, seconds: float) -> Contender:
    window = Window.lasting(MEMORY_PER_S, max(WARM_S, flow.warm_s), seconds)
    return contender(flow, MEMORY_TOPIC, MEMORY_IN_FLIGHT, "timed", window)


def _fill_memory(seconds: float) -> Callable[[Bench], None]:
    return filled(MEMORY_TOPIC, round(MEMORY_PER_S * (WARM_S + seconds + AHEAD_S)), SLOW)


WHY: Final = "../docs/decisions/0021-what-the-targets-miss.md"
RSS: Final = f"{WHY}#memory-of-a-processor"
LATENCY: Final = f"{WHY}#start-and-latency"
LITTLE_WORK: Final = f"{WHY}#cpu-at-little-work"


def _cpu(text: str, name: str, most: float | None = None) -> Line:
    cpu, seconds = ((STEADY, name, figure) for figure in ("cpu_s", "seconds"))
    return Line(text, cpu, "%", to=seconds, factor=100, most=most, why=LITTLE_WORK)


def _memory_line(flow: Flow, most: float | None = None) -> Line:
    return Line(f"Memory at N = 2,000: {flow.name}", (MEMORY, flow.name, "rss_mb"), "MB", most=most, why=RSS)


LATE_RSS: Final = (LONG_MEMORY, OURS, "rss_mb")
# Compared at 100 records per second: the highest median latency allowed, ms.
OTHERS: Final = {flows.DEFERRED: 6.0, flows.NOT_GATHERING: 2.0, flows.PARALLEL_CONSUMER: None, flows.AIOKAFKA: None}
LINES: Final = (
    *(_memory_line(flow, 90) for flow in MODES),
    _memory_line(flows.PARALLEL_CONSUMER),
    Line("The same, ten minutes", LATE_RSS, "MB", most=100, why=RSS),
    Line("Memory after ten minutes / after one", LATE_RSS, to=(MEMORY, OURS, "rss_mb"), most=1.05, why=RSS),
    Line("Start-up to the first record", (START, OURS, "first_record_s"), "s", most=3, why=LATENCY),
    Line("Publish to start of the handler, median", (STEADY, OURS, "p50_ms"), "ms", most=4, why=LATENCY),
    Line("The same, 99th percentile", (STEADY, OURS, "p99_ms"), "ms", most=20, why=LATENCY),
    *(
        Line(f"The same, median: {flow.name}", (STEADY, flow.name, "p50_ms"), "ms", most=most, why=LATENCY)
        for flow, most in OTHERS.items()
    ),
    _cpu("CPU at 100 records/s, of a core", OURS, 10),
    *(_cpu(f"The same: {flow.name}", flow.name, 10 if flow is flows.DEFERRED else None) for flow in OTHERS),
    Line("CPU idle, of a core", (IDLE, OURS, "idle_cpu_share"), "%", factor=100, most=0.8, why=LITTLE_WORK),
)

ROW: Final = Row(3, "A processor at rest and at little work", _cases, LINES, warm_up=warm_up(MEMORY_TOPIC, SLOW))
