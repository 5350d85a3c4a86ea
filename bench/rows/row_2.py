"""Row 2: the processor's ceiling. What a record costs when its handler costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.contenders.flows import (
    AIOKAFKA,
    ARROYO,
    BARE_LOOP,
    DEFERRED,
    OFF,
    PARALLEL_CONSUMER,
    PARALLEL_CONSUMER_BY_KEY,
    REGISTRY,
    SHARE_CONSUMER,
    Flow,
    Window,
    contender,
    filled,
    warm_up,
)
from bench.contenders.load import SLOW, Mixture, Share, mean_call_s
from bench.harness.row import Bench, Case, Contender, Line, Pair, Row

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
LINGER: Final[Mapping[str, Any]] = {"linger_ms": 5}
IN_FLIGHT: Final = 50
BATCH: Final = 500
SHORT_IN_FLIGHT: Final = 100
WAITING_IN_FLIGHT: Final = 500
SECONDS: Final = 8.0
# Records per second where this was written; on a faster machine the windows are shorter, down to flows.LEAST_S.
NOOP_PER_S: Final[Mapping[Flow, float]] = {
    BARE_LOOP: 95_000,
    REGISTRY: 53_000,
    DEFERRED: 150_000,
    OFF: 150_000,
    PARALLEL_CONSUMER: 175_000,
    ARROYO: 51_000,
    PARALLEL_CONSUMER_BY_KEY: 75_000,
    AIOKAFKA: 100_000,
    SHARE_CONSUMER: 250_000,
}
# The same while a JVM compiles.
WARMING_PER_S: Final[Mapping[Flow, float]] = {PARALLEL_CONSUMER: 115_000, PARALLEL_CONSUMER_BY_KEY: 40_000}
COMPARED: Final = (BARE_LOOP, REGISTRY, DEFERRED, OFF, PARALLEL_CONSUMER, ARROYO)
ALSO_COMPARED: Final = {PARALLEL_CONSUMER_BY_KEY: IN_FLIGHT, AIOKAFKA: BATCH, SHARE_CONSUMER: BATCH}
SHORT_PER_S: Final[Mapping[Flow, float]] = {REGISTRY: 38_000, DEFERRED: 50_000, PARALLEL_CONSUMER: 65_000}
# Of one process as of two, so that both come to the same records.
TWO_WINDOW: Final = Window(150_000, 650_000, 120.0)
NOOP_RECORDS: Final = 2_700_000
SHORT_RECORDS: Final = 1_250_000
WAITING_WARM_S: Final = 5.0
WAITING_SECONDS: Final = 9.0
QUICK_WINDOW: Final = Window(500, 2_500, 120.0)
# Far more than are counted.
QUICK_RECORDS: Final = 60_000
# Of two processes the first must not have come to the end before the other one is at work: 40 s of it.
QUICK: Final[Mixture] = (Share(100, 10),)
QUICK_IN_FLIGHT: Final = 10
QUICK_WAITING_RECORDS: Final = 40_000
RATE: Final = "records_per_s"
PER_CORE: Final = "records_per_cpu_s"
CPU: Final = "cpu_us_per_record"


def _cases(bench: Bench) -> Sequence[Case]:
    fill_noop = filled(NOOP_TOPIC, bench.size(QUICK_RECORDS, NOOP_RECORDS))
    if bench.quick:
        both = [contender(flow, NOOP_TOPIC, IN_FLIGHT, "noop", QUICK_WINDOW) for flow in COMPARED[:3]]
        two = [_waiting(2, QUICK_IN_FLIGHT, QUICK_WINDOW)]
        fill_waiting = filled(WAITING_TOPIC, QUICK_WAITING_RECORDS, QUICK)
        return [Case(CEILING, both, prepare=fill_noop), Case(TWO_WAITING_CASE, two, prepare=fill_waiting)]
    fill_short = filled(SHORT_TOPIC, SHORT_RECORDS, SHORT)
    # Twice what is measured: neither process may have come to its partitions' end while the other continues.
    waiting = round(2 * WAITING_IN_FLIGHT / mean_call_s(SLOW) * 2 * (WAITING_WARM_S + WAITING_SECONDS))
    return [
        Case(CEILING, [_noop(flow) for flow in COMPARED], 2, fill_noop),
        Case(OTHERS, [_noop(flow, in_flight) for flow, in_flight in ALSO_COMPARED.items()]),
        Case(MILLISECOND, [_short(flow) for flow in SHORT_PER_S], bench.size(1, 1, 2), fill_short),
        Case(TWO_CASE, [_several(1), _several(2)]),
        Case(TWO_WAITING_CASE, [_slow(1), _slow(2)], prepare=filled(WAITING_TOPIC, waiting, SLOW)),
    ]


def _noop(flow: Flow, in_flight: int = IN_FLIGHT) -> Contender:
    window = Window.lasting(NOOP_PER_S[flow], flow.warm_s, SECONDS, warming_per_s=WARMING_PER_S.get(flow, 0.0))
    return contender(flow, NOOP_TOPIC, in_flight, "noop", window, **LINGER)


def _short(flow: Flow) -> Contender:
    window = Window.lasting(SHORT_PER_S[flow], flow.warm_s, SECONDS)
    return contender(flow, SHORT_TOPIC, SHORT_IN_FLIGHT, "timed", window, **LINGER)


def _several(processes: int) -> Contender:
    name = TWO if processes > 1 else ONE
    return contender(REGISTRY, NOOP_TOPIC, IN_FLIGHT, "noop", TWO_WINDOW, name=name, processes=processes, **LINGER)


def _slow(processes: int) -> Contender:
    expected_per_s = processes * WAITING_IN_FLIGHT / mean_call_s(SLOW)
    return _waiting(processes, WAITING_IN_FLIGHT, Window.lasting(expected_per_s, WAITING_WARM_S, WAITING_SECONDS))


def _waiting(processes: int, in_flight: int, window: Window) -> Contender:
    name = TWO if processes > 1 else ONE
    return contender(REGISTRY, WAITING_TOPIC, in_flight, "timed", window, name=name, processes=processes)


def _pairs(bench: Bench) -> Sequence[Pair]:
    window = QUICK_WINDOW if bench.quick else Window.lasting(NOOP_PER_S[REGISTRY], REGISTRY.warm_s, SECONDS)
    ours = contender(REGISTRY, NOOP_TOPIC, IN_FLIGHT, "noop", window, **LINGER)
    records = window.to_record + QUICK_RECORDS
    return [Pair(CEILING, ours.measure, (RATE,), (CPU,), filled(NOOP_TOPIC, records))]


OURS: Final = REGISTRY.name
THEIRS: Final = PARALLEL_CONSUMER.name
PROCESSOR: Final = "../docs/decisions/0017-what-a-record-costs-a-processor.md"
MISSED: Final = "../docs/decisions/0021-what-the-targets-miss.md"
PEERS: Final = f"{MISSED}#per-core-beside-the-peers"


def _per_core(text: str, case: str, name: str, least: float | None, ours: str = OURS) -> Line:
    return Line(text, (case, ours, PER_CORE), to=(case, name, PER_CORE), least=least, why=PEERS)


def _rate(text: str, case: str, name: str, least: float | None = None) -> Line:
    return Line(text, (case, name, RATE), "records/s", least=least, why=PROCESSOR)


def _rates(text: str, case: str, one: str, other: str, least: float, why: str) -> Line:
    return Line(text, (case, one, RATE), to=(case, other, RATE), least=least, why=f"{MISSED}#{why}")


LINES: Final = (
    _rate("Registry", CEILING, OURS, 50_000),
    Line("Registry: client CPU per record", (CEILING, OURS, CPU), "µs", most=20, why=PROCESSOR),
    _rate("Bare loop", CEILING, BARE_LOOP.name),
    _rates("Registry / bare loop", CEILING, OURS, BARE_LOOP.name, 0.75, "registry-and-bare-loop"),
    _rate("Parallel Consumer, UNORDERED", CEILING, THEIRS),
    _per_core("Registry / Parallel Consumer, by client core", CEILING, THEIRS, 1.3),
    _rate("Registry, deferred", CEILING, DEFERRED.name, 150_000),
    Line("Registry, deferred: client CPU per record", (CEILING, DEFERRED.name, CPU), "µs"),
    _per_core("Deferred / Parallel Consumer, by client core", CEILING, THEIRS, 1.5, DEFERRED.name),
    _rate("Registry, off", CEILING, OFF.name),
    _per_core("Off / Parallel Consumer, by client core", CEILING, THEIRS, None, OFF.name),
    _rate("arroyo, RunTask", CEILING, ARROYO.name),
    _per_core("Registry / arroyo, by client core", CEILING, ARROYO.name, 2),
    *(_rate(flow.name, OTHERS, flow.name) for flow in ALSO_COMPARED),
    _per_core("1 ms: registry / Parallel Consumer, by client core", MILLISECOND, THEIRS, 1.45),
    _per_core("1 ms: deferred / Parallel Consumer, by client core", MILLISECOND, THEIRS, None, DEFERRED.name),
    _rates("Two processes / one", TWO_CASE, TWO, ONE, 1.8, "two-processes"),
    _rates("Two processes / one, calls that wait", TWO_WAITING_CASE, TWO, ONE, 1.8, "two-processes"),
)

ROW: Final = Row(2, "The processor's ceiling", _cases, LINES, warm_up=warm_up(NOOP_TOPIC), pairs=_pairs)
