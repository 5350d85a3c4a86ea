"""Row 9: records that trickle. What a record costs, and how long it waits, when records come one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.contenders import flows
from bench.contenders.flows import Flow, warm_up
from bench.contenders.trickle import Trickle, case_name, trickling
from bench.harness.row import Bench, Case, Line, Pair, Place, Row

USUAL: Final = (100, 1_000)
RATES: Final = (10, *USUAL, 5_000)
# The rate that has targets.
JUDGED: Final = 1_000
OURS: Final = (flows.REGISTRY, flows.DEFERRED, flows.NOT_GATHERING, flows.OFF)
COMPARED: Final = (*OURS, flows.PARALLEL_CONSUMER, flows.AIOKAFKA, flows.BARE_LOOP)
WARM_UP_TOPIC: Final = "bench.r9.warm-up"
CPU: Final = "cpu_us_per_record"
MEDIAN: Final = "p50_ms"


def _cases(bench: Bench) -> Sequence[Case]:
    if bench.quick:
        return [Case(case_name(JUDGED), [trickling(flows.DEFERRED, Trickle(JUDGED, 2, 1))])]
    rates = RATES if bench.full else USUAL
    return [
        Case(case_name(per_s), [trickling(flow, Trickle(per_s, 10, bench.size(1, 10, 20))) for flow in COMPARED])
        for per_s in rates
    ]


def _pairs(bench: Bench) -> Sequence[Pair]:
    def pair(per_s: int, flow: Flow) -> Pair:
        measure = trickling(flow, Trickle(per_s, bench.size(2, 10), bench.size(1, 20))).measure
        return Pair(f"{case_name(per_s)}, {flow.name}", measure, costs=(CPU, MEDIAN))

    return [pair(per_s, flow) for per_s in USUAL for flow in (flows.REGISTRY, flows.DEFERRED)]


WHY: Final = "../docs/decisions/0021-what-the-targets-miss.md"
LITTLE_WORK: Final = f"{WHY}#cpu-at-little-work"
LATENCY: Final = f"{WHY}#start-and-latency"
# Where a target is set, ms.
MEDIANS: Final = {flows.DEFERRED: 6.0, flows.NOT_GATHERING: 2.0}


def _place(per_s: int, flow: Flow, figure: str) -> Place:
    return case_name(per_s), flow.name, figure


def _lines_of(per_s: int) -> Sequence[Line]:
    medians = MEDIANS if per_s == JUDGED else {}
    return (
        *(Line(f"{per_s:,}/s: CPU per record, {flow.name}", _place(per_s, flow, CPU), "µs") for flow in COMPARED),
        *(
            Line(
                f"{per_s:,}/s: median, {flow.name}",
                _place(per_s, flow, MEDIAN),
                "ms",
                most=medians.get(flow),
                why=LATENCY,
            )
            for flow in COMPARED
        ),
        *(Line(f"{per_s:,}/s: 99th percentile, {flow.name}", _place(per_s, flow, "p99_ms"), "ms") for flow in COMPARED),
    )


def _ratio(ours: Flow, theirs: Flow, most: float | None = None) -> Line:
    text = f"{JUDGED:,}/s: CPU, {ours.name} / {theirs.name}"
    return Line(text, _place(JUDGED, ours, CPU), to=_place(JUDGED, theirs, CPU), most=most, why=LITTLE_WORK)


LINES: Final = (
    _ratio(flows.DEFERRED, flows.PARALLEL_CONSUMER, 0.4),
    _ratio(flows.DEFERRED, flows.AIOKAFKA, 0.4),
    _ratio(flows.DEFERRED, flows.BARE_LOOP, 1),
    _ratio(flows.REGISTRY, flows.PARALLEL_CONSUMER),
    *(line for per_s in RATES for line in _lines_of(per_s)),
)

ROW: Final = Row(9, "Records that trickle", _cases, LINES, warm_up=warm_up(WARM_UP_TOPIC), pairs=_pairs)
