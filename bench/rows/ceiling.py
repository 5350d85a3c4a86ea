"""Row 2: the processor's ceiling. What a record costs when its handler costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.contenders import flows
from bench.contenders.flows import Flow, Window, contender, filled, warm_up
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
COMPARED: Final = (flows.BARE_LOOP, flows.REGISTRY, flows.DEFERRED, flows.OFF, flows.PARALLEL_CONSUMER, flows.ARROYO)
ALSO_COMPARED: Final = {
    flows.BY_KEY: IN_FLIGHT,
    flows.PARALLEL_CONSUMER_BY_KEY: IN_FLIGHT,
    flows.AIOKAFKA: BATCH,
    flows.SHARE_CONSUMER: BATCH,
}
SHORT_PER_S: Final = {flows.REGISTRY: 38_000, flows.DEFERRED: 50_000, flows.PARALLEL_CONSUMER: 65_000}
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
QUICK_WAITING_RECORDS: Final = 40_000
RATE: Final = "records_per_s"
PER_CORE: Final = "records_per_cpu_s"
CPU: Final = "cpu_us_per_record"


def _cases(bench: Bench) -> Sequence[Case]:
    fill_noop = filled(NOOP_TOPIC, bench.size(QUICK_RECORDS, NOOP_RECORDS))
    if bench.quick:
        both = [contender(flow, NOOP_TOPIC, IN_FLIGHT, "noop", QUICK_WINDOW) for flow in COMPARED[:3]]
        two = [_waiting(2, 10, QUICK_WINDOW)]
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
        Case(TWO_WAITING_CASE, [_waiting(1), _waiting(2)], prepare=filled(WAITING_TOPIC, waiting, SLOW)),
    ]


def _noop(flow: Flow, in_flight: int = IN_FLIGHT) -> Contender:
    return contender(flow, NOOP_TOPIC, in_flight, "noop", flow.noop_window(SECONDS), **LINGER)


def _short(flow: Flow) -> Contender:
    window = Window.lasting(SHORT_PER_S[flow], flow.warm_s, SECONDS)
    return contender(flow, SHORT_TOPIC, SHORT_IN_FLIGHT, "timed", window, **LINGER)


def _several(processes: int) -> Contender:
    options: dict[str, Any] = {**LINGER, "processes": processes, "name": (ONE, TWO)[processes - 1]}
    return contender(flows.REGISTRY, NOOP_TOPIC, IN_FLIGHT, "noop", TWO_WINDOW, **options)


def _waiting(processes: int, in_flight: int = WAITING_IN_FLIGHT, window: Window | None = None) -> Contender:
    expected = Window.lasting(processes * in_flight / mean_call_s(SLOW), WAITING_WARM_S, WAITING_SECONDS)
    options: dict[str, Any] = {"processes": processes, "name": (ONE, TWO)[processes - 1]}
    return contender(flows.REGISTRY, WAITING_TOPIC, in_flight, "timed", window or expected, **options)


def _pairs(bench: Bench) -> Sequence[Pair]:
    compared = (flows.REGISTRY,) if bench.quick else (flows.REGISTRY, flows.DEFERRED)
    windows = [QUICK_WINDOW if bench.quick else flow.noop_window(SECONDS) for flow in compared]
    fill = filled(NOOP_TOPIC, max(window.to_record for window in windows) + QUICK_RECORDS)
    ours = [
        contender(flow, NOOP_TOPIC, IN_FLIGHT, "noop", window, **LINGER)
        for flow, window in zip(compared, windows, strict=True)
    ]
    names = (CEILING, f"{CEILING}, deferred")
    return [Pair(name, each.measure, (RATE,), (CPU,), fill) for name, each in zip(names, ours, strict=False)]


OURS: Final = flows.REGISTRY.name
THEIRS: Final = flows.PARALLEL_CONSUMER.name
BY_KEY: Final = flows.PARALLEL_CONSUMER_BY_KEY.name
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
    _rate("Bare loop", CEILING, flows.BARE_LOOP.name),
    _rates("Registry / bare loop", CEILING, OURS, flows.BARE_LOOP.name, 0.75, "registry-and-bare-loop"),
    _rate("Parallel Consumer, UNORDERED", CEILING, THEIRS),
    _per_core("Registry / Parallel Consumer, by client core", CEILING, THEIRS, 1.3),
    _rate("Registry, deferred", CEILING, flows.DEFERRED.name, 150_000),
    Line("Registry, deferred: client CPU per record", (CEILING, flows.DEFERRED.name, CPU), "µs"),
    _per_core("Deferred / Parallel Consumer, by client core", CEILING, THEIRS, 1.5, flows.DEFERRED.name),
    _rate("Registry, off", CEILING, flows.OFF.name),
    _per_core("Off / Parallel Consumer, by client core", CEILING, THEIRS, None, flows.OFF.name),
    _rate("arroyo, RunTask", CEILING, flows.ARROYO.name),
    _per_core("Registry / arroyo, by client core", CEILING, flows.ARROYO.name, 2),
    *(_rate(flow.name, OTHERS, flow.name) for flow in ALSO_COMPARED),
    _per_core(
        "Registry, off, by key / Parallel Consumer, KEY, by client core", OTHERS, BY_KEY, None, flows.BY_KEY.name
    ),
    _per_core("1 ms: registry / Parallel Consumer, by client core", MILLISECOND, THEIRS, 1.45),
    _per_core("1 ms: deferred / Parallel Consumer, by client core", MILLISECOND, THEIRS, None, flows.DEFERRED.name),
    _rates("Two processes / one", TWO_CASE, TWO, ONE, 1.8, "two-processes"),
    _rates("Two processes / one, calls that wait", TWO_WAITING_CASE, TWO, ONE, 1.8, "two-processes"),
)

ROW: Final = Row(2, "The processor's ceiling", _cases, LINES, warm_up=warm_up(NOOP_TOPIC), pairs=_pairs)
