"""Row 2: the processor's ceiling. What a record costs when its handler costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from bench.contenders.flows import (
    AIOKAFKA,
    ARROYO,
    BARE_LOOP,
    FASTSTREAM,
    PARALLEL_CONSUMER,
    PARALLEL_CONSUMER_BY_KEY,
    REGISTRY,
    SHARE_CONSUMER,
    Flow,
    Window,
    contender,
)
from bench.contenders.load import AT_ONCE, Mixture, Share, fill, mean_call_s
from bench.contenders.warm_up import warm_up
from bench.harness.row import Bench, Case, Contender, Line, Row
from bench.harness.target import at_least, at_most
from bench.rows.explained import PROCESSOR, missed
from bench.rows.figure_lines import figure_line, ratio_line

ABOUT: Final = """\
Records of 200 bytes (and a key of 15) in 4 partitions, lz4, and a handler that does nothing. The registry is `python -m
waitreg processor` with everything on: start checks, metrics (read every 5 s), INFO logs, retries, rebalances; settings
are its defaults but for `linger_ms = 5`, which its description gives for throughput. It writes two
records for each that it reads; nobody else here writes any, but for the bare loop.

*The bare loop* (`bench/bare_loop.py`) does what the pattern itself takes and nothing else, without an event loop and
without workers: consume, wait record with all its headers, commit of the acknowledged prefix, no-op, tombstone; its
clients are set as the registry's. It works for a quarter of a minute before the first case, unmeasured: a broker that
has just started takes longer for everything.

*Client core*: records by second of the contender's own processor time (user and system, all threads, so librdkafka's
and the JVM's compilers and collectors too). Broker, producer of the records and harness don't count. On two cores that
the broker needs as well, that is what says how contenders compare; records by second say what this machine gave.

Everybody works for some seconds first, those on a JVM for ten or more, and is measured for about eight: what a JVM
compiles meanwhile doesn't count. `warm_s` says how long the Parallel Consumer had.

N = 50, but for those who commit a batch before they take the next: 500, which for the share consumer is the default.
*Others* are measured once a round, one after the other; no ratio is made with them.
Calls of 1 ms at N = 100 are timers in the registry, and sleeping threads in the Parallel Consumer and in arroyo
(`RunTaskInThreads`, which is for calls that wait); a timer of 1 ms takes longer on a busy event loop, so the mean call
as measured stands beside.

*Two processes* of one group share the partitions evenly; both and the single one are measured by turns, two as one
window in which both were at work. With a no-op they and the broker want more than two cores, so what is added up there
is the machine; the same with calls that wait (10 % 1 s, 90 % 200 ms, N = 500 each) shows what the group adds.
"""

CEILING: Final = "no-op"
OTHERS: Final = "no-op, others"
MILLISECOND: Final = "1 ms"
TWO_CASE: Final = "two processes, no-op"
TWO_WAITING_CASE: Final = "two processes, calls that wait"
ONE: Final = "one process"
TWO: Final = "two processes"

NOOP_TOPIC: Final = "bench.r2.noop"
SHORT_TOPIC: Final = "bench.r2.1ms"
WAITING_TOPIC: Final = "bench.r2.waiting"
SHORT: Final[Mixture] = (Share(100, 1),)
WAITING: Final[Mixture] = (Share(10, 1000), Share(90, 200))
LINGER: Final = ("--linger-ms", "5")
IN_FLIGHT: Final = 50
BATCH: Final = 500
SHORT_IN_FLIGHT: Final = 100
WAITING_IN_FLIGHT: Final = 500

SECONDS: Final = 8.0
# Records a second where this was written; on a faster machine the windows are shorter, down to flows.LEAST_S.
NOOP_PER_S: Final[Mapping[Flow, float]] = {
    BARE_LOOP: 95_000,
    REGISTRY: 53_000,
    PARALLEL_CONSUMER: 175_000,
    ARROYO: 51_000,
    PARALLEL_CONSUMER_BY_KEY: 75_000,
    AIOKAFKA: 100_000,
    SHARE_CONSUMER: 250_000,
    FASTSTREAM: 7_500,
}
# What a JVM does while it compiles.
WARMING_PER_S: Final[Mapping[Flow, float]] = {PARALLEL_CONSUMER: 115_000, PARALLEL_CONSUMER_BY_KEY: 40_000}
COMPARED: Final = (BARE_LOOP, REGISTRY, PARALLEL_CONSUMER, ARROYO)
BESIDE: Final = {PARALLEL_CONSUMER_BY_KEY: IN_FLIGHT, AIOKAFKA: BATCH, SHARE_CONSUMER: BATCH, FASTSTREAM: BATCH}
SHORT_PER_S: Final[Mapping[Flow, float]] = {REGISTRY: 38_000, PARALLEL_CONSUMER: 65_000, ARROYO: 16_000}
# Of one process as of two, so that both get on to the same records.
TWO_WINDOW: Final = Window(150_000, 650_000, 120.0)
NOOP_RECORDS: Final = 2_700_000
SHORT_RECORDS: Final = 1_250_000
WAITING_WARM_S: Final = 5.0
WAITING_SECONDS: Final = 9.0
QUICK_WINDOW: Final = Window(500, 2_500, 120.0)
# Far more than are counted: of two processes neither may have come to its end before the other is at work.
QUICK_RECORDS: Final = 60_000

RATE: Final = "records_per_s"
PER_CORE: Final = "records_per_cpu_s"
CPU: Final = "cpu_us_per_record"


def _cases(bench: Bench) -> Sequence[Case]:
    if bench.quick:
        return _quick_cases()
    fill_short = partial(_fill, SHORT_TOPIC, SHORT_RECORDS, SHORT)
    return [
        Case(CEILING, [_noop(flow) for flow in COMPARED], turns=2, prepare=_fill_noop),
        Case(OTHERS, [_noop(flow, in_flight) for flow, in_flight in BESIDE.items()], prepare=_fill_noop),
        Case(MILLISECOND, [_short(flow) for flow in SHORT_PER_S], turns=bench.size(1, 1, 2), prepare=fill_short),
        Case(TWO_CASE, [_several(1, ONE, TWO_WINDOW), _several(2, TWO, TWO_WINDOW)], prepare=_fill_noop),
        Case(TWO_WAITING_CASE, [_waiting(1, ONE), _waiting(2, TWO)], prepare=_fill_waiting),
    ]


def _quick_cases() -> list[Case]:
    both = [contender(flow, NOOP_TOPIC, IN_FLIGHT, "noop", QUICK_WINDOW) for flow in COMPARED[:2]]
    two = [_several(1, ONE, QUICK_WINDOW), _several(2, TWO, QUICK_WINDOW)]
    fill_quick = partial(_fill, NOOP_TOPIC, QUICK_RECORDS, AT_ONCE)
    return [Case(CEILING, both, prepare=fill_quick), Case(TWO_CASE, two, prepare=fill_quick)]


def _options(flow: Flow) -> tuple[str, ...]:
    return LINGER if flow is REGISTRY else ()


def _noop(flow: Flow, in_flight: int = IN_FLIGHT) -> Contender:
    warming_per_s = WARMING_PER_S.get(flow, 0.0)
    window = Window.lasting(NOOP_PER_S[flow], flow.warm_s, SECONDS, warming_per_s=warming_per_s)
    return contender(flow, NOOP_TOPIC, in_flight, "noop", window, *_options(flow))


def _short(flow: Flow) -> Contender:
    window = Window.lasting(SHORT_PER_S[flow], flow.warm_s, SECONDS)
    return contender(flow, SHORT_TOPIC, SHORT_IN_FLIGHT, "timed", window, *_options(flow))


def _several(processes: int, name: str, window: Window) -> Contender:
    return contender(REGISTRY, NOOP_TOPIC, IN_FLIGHT, "noop", window, *LINGER, name=name, processes=processes)


def _waiting(processes: int, name: str) -> Contender:
    expected_per_s = processes * WAITING_IN_FLIGHT / mean_call_s(WAITING)
    window = Window.lasting(expected_per_s, WAITING_WARM_S, WAITING_SECONDS)
    return contender(REGISTRY, WAITING_TOPIC, WAITING_IN_FLIGHT, "timed", window, name=name, processes=processes)


def _fill(topic: str, records: int, mixture: Mixture, bench: Bench) -> None:
    fill(bench.kafka, topic, records, mixture)


def _fill_noop(bench: Bench) -> None:
    fill(bench.kafka, NOOP_TOPIC, NOOP_RECORDS)


def _fill_waiting(bench: Bench) -> None:
    # Twice what is measured: one of the two must not have come to its partitions' end while the other goes on.
    seconds = 2 * (WAITING_WARM_S + WAITING_SECONDS)
    fill(bench.kafka, WAITING_TOPIC, round(2 * WAITING_IN_FLIGHT / mean_call_s(WAITING) * seconds), WAITING)


OURS: Final = REGISTRY.name
THEIRS: Final = PARALLEL_CONSUMER.name


def _cost(text: str, case: str, contender_name: str) -> list[Line]:
    return [
        figure_line(text, (case, contender_name, RATE), "records/s"),
        figure_line(f"{text}: client CPU a record", (case, contender_name, CPU), "µs"),
    ]


def _lines() -> list[Line]:
    return [
        figure_line("Registry", (CEILING, OURS, RATE), "records/s", aim=at_least(50_000), why=PROCESSOR),
        figure_line("Bare loop", (CEILING, BARE_LOOP.name, RATE), "records/s"),
        ratio_line(
            "Registry / bare loop",
            (CEILING, OURS, RATE),
            (CEILING, BARE_LOOP.name, RATE),
            target=at_least(0.75),
            why=missed("registry-and-bare-loop"),
        ),
        figure_line("Registry: client CPU a record", (CEILING, OURS, CPU), "µs", target=at_most(20), why=PROCESSOR),
        figure_line("Bare loop: client CPU a record", (CEILING, BARE_LOOP.name, CPU), "µs"),
        *_cost("Parallel Consumer, UNORDERED", CEILING, THEIRS),
        ratio_line(
            "Registry / Parallel Consumer, by client core",
            (CEILING, OURS, PER_CORE),
            (CEILING, THEIRS, PER_CORE),
            target=at_least(1.3),
            why=missed("per-core-beside-the-peers"),
        ),
        *_cost("arroyo, RunTask", CEILING, ARROYO.name),
        ratio_line(
            "Registry / arroyo, by client core",
            (CEILING, OURS, PER_CORE),
            (CEILING, ARROYO.name, PER_CORE),
            target=at_least(2),
            why=missed("per-core-beside-the-peers"),
        ),
        *(line for flow in BESIDE for line in _cost(flow.name, OTHERS, flow.name)),
        *_millisecond_lines(),
        *_two_processes_lines(),
    ]


def _millisecond_lines() -> list[Line]:
    lines = [
        ratio_line(
            "1 ms: registry / Parallel Consumer, by client core",
            (MILLISECOND, OURS, PER_CORE),
            (MILLISECOND, THEIRS, PER_CORE),
            target=at_least(1.45),
            why=missed("per-core-beside-the-peers"),
        ),
        ratio_line(
            "1 ms: registry / arroyo with threads, by client core",
            (MILLISECOND, OURS, PER_CORE),
            (MILLISECOND, ARROYO.name, PER_CORE),
        ),
    ]
    for flow in SHORT_PER_S:
        text, mean_call = f"1 ms: {flow.name}", (MILLISECOND, flow.name, "mean_call_s")
        lines += _cost(text, MILLISECOND, flow.name)
        lines.append(figure_line(f"{text}: mean call as measured", mean_call, "ms", factor=1e3))
    return lines


def _two_processes_lines() -> list[Line]:
    return [
        ratio_line(
            "Two processes / one",
            (TWO_CASE, TWO, RATE),
            (TWO_CASE, ONE, RATE),
            target=at_least(1.8),
            why=missed("two-processes"),
        ),
        ratio_line("Two processes / one, by client core", (TWO_CASE, TWO, PER_CORE), (TWO_CASE, ONE, PER_CORE)),
        ratio_line(
            "Two processes / one, calls that wait",
            (TWO_WAITING_CASE, TWO, RATE),
            (TWO_WAITING_CASE, ONE, RATE),
            target=at_least(1.8),
            why=missed("two-processes"),
        ),
    ]


ROW: Final = Row(2, "The processor's ceiling", ABOUT, _cases, _lines(), warm_up=partial(warm_up, topic=NOOP_TOPIC))
