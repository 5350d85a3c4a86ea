"""Row 3: what a processor takes while it does little: memory, start, latency, idling."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Final
from uuid import uuid4

from bench.contenders.flows import (
    AIOKAFKA,
    PARALLEL_CONSUMER,
    REGISTRY,
    Flow,
    Window,
    contender,
    deadline_s,
    flow_arguments,
)
from bench.contenders.load import Mixture, Share, create, fill, mean_call_s
from bench.contenders.warm_up import warm_up
from bench.harness.process import flow_figures, started
from bench.harness.row import Bench, Case, Contender, Figures, Line, Round, Row
from bench.harness.target import at_most
from bench.rows.explained import missed
from bench.rows.figure_lines import figure_line

ABOUT: Final = """\
*Memory* is resident memory of the whole process at N = 2,000 with calls that take 1 s (10 %) or 200 ms, some 7,000 a
second, for a minute, and for ten in the first round of a FULL run: the most at any time (`VmHWM`), and the means of the
first and the last tenth of samples taken every second. MB are 10^6 bytes. The Parallel Consumer may use a heap of 1 GB.

*Start-up* is from the start of `waitreg processor` to the end of the first call, with records waiting and a
handler that does nothing: imports, settings, start checks, joining the group, the first window registered and its
commit confirmed.

*100 records a second* are published evenly, each on its own, by a process that doesn't linger; the time of handing the
record to its client stands in it. Latency is from there to the start of the handler, so it holds two trips through the
broker for the registry (record, wait record) and one for the others. All settings are the defaults, `linger_ms = 1`
among them. CPU is the contender's own. The peers don't write anything before they call; aiokafka is measured in FULL
runs alone.

*Idle*: the topic has been worked off, nothing comes; `/metrics` is read every 5 s.

Before the first case the bare loop works for a quarter of a minute, unmeasured: a broker that has just started takes
longer for everything. The contenders are measured one after the other; no ratio is made between them.
"""

MEMORY: Final = "memory"
LONG_MEMORY: Final = "memory, ten minutes"
START: Final = "start-up"
STEADY: Final = "100 records a second"
IDLE: Final = "idle"

MIXTURE: Final[Mixture] = (Share(10, 1000), Share(90, 200))
QUICK_MIXTURE: Final[Mixture] = (Share(10, 50), Share(90, 10))
MEMORY_TOPIC: Final = "bench.r3.memory"
FEW_TOPIC: Final = "bench.r3.few"
MEMORY_IN_FLIGHT: Final = 2000
IN_FLIGHT: Final = 50
WARM_S: Final = 5.0
MEMORY_S: Final = 60.0
LONG_S: Final = 600.0
PEER_S: Final = 15.0
FEW: Final = 400
PER_S: Final = 100
LATENCY_WARM_S: Final = 10
AHEAD_S: Final = 4.0
OURS: Final = REGISTRY.name
THEIRS: Final = PARALLEL_CONSUMER.name


def _cases(bench: Bench) -> Sequence[Case]:
    steady = (REGISTRY, PARALLEL_CONSUMER, AIOKAFKA)[: bench.size(1, 2, 3)]
    # Not for its pace: how long it runs doesn't matter.
    start = contender(REGISTRY, FEW_TOPIC, IN_FLIGHT, "noop", Window(1, FEW // 2, 90.0, least_s=0))
    idle_s = str(bench.size(2, 20, 40))
    idle = contender(REGISTRY, FEW_TOPIC, IN_FLIGHT, "noop", Window(1, FEW, 90.0, least_s=0), "--idle-s", idle_s)
    cases = [
        Case(MEMORY, _memory_contenders(bench), prepare=_fill_memory),
        Case(LONG_MEMORY, [_ours_for(LONG_S)], prepare=_fill_memory),
        Case(START, [start], turns=bench.size(1, 3), prepare=_fill_few),
        Case(STEADY, [_steady(flow) for flow in steady]),
        Case(IDLE, [idle], prepare=_fill_few),
    ]
    return [case for case in cases if bench.first_of_full or case.name != LONG_MEMORY]


def _memory_per_s() -> float:
    return MEMORY_IN_FLIGHT / mean_call_s(MIXTURE)


def _memory_contenders(bench: Bench) -> list[Contender]:
    if bench.quick:
        return [contender(REGISTRY, MEMORY_TOPIC, 20, "timed", Window(50, 400, 90.0))]
    theirs = Window.lasting(_memory_per_s(), PARALLEL_CONSUMER.warm_s, PEER_S)
    return [_ours_for(MEMORY_S), contender(PARALLEL_CONSUMER, MEMORY_TOPIC, MEMORY_IN_FLIGHT, "timed", theirs)]


def _ours_for(seconds: float) -> Contender:
    window = Window.lasting(_memory_per_s(), WARM_S, seconds)
    return contender(REGISTRY, MEMORY_TOPIC, MEMORY_IN_FLIGHT, "timed", window)


def _fill_memory(bench: Bench) -> None:
    if bench.quick:
        fill(bench.kafka, MEMORY_TOPIC, 600, QUICK_MIXTURE)
    else:
        seconds = WARM_S + (LONG_S if bench.first_of_full else MEMORY_S) + AHEAD_S
        fill(bench.kafka, MEMORY_TOPIC, round(_memory_per_s() * seconds), MIXTURE)


def _warm_up(bench: Bench) -> None:
    warm_up(bench, MEMORY_TOPIC, QUICK_MIXTURE if bench.quick else MIXTURE)


def _fill_few(bench: Bench) -> None:
    fill(bench.kafka, FEW_TOPIC, FEW)


def _steady(flow: Flow) -> Contender:
    return Contender(flow.name, partial(_measure_steady, flow), flow.lacks, flow.version(), 300.0)


def _measure_steady(flow: Flow, bench: Bench) -> Figures:
    """Have a contender wait for records that are published while it runs."""
    warm, measured = PER_S * bench.size(2, LATENCY_WARM_S), PER_S * bench.size(1, 20, 40)
    seconds = (warm + measured) / PER_S
    window = Window(warm, warm + measured, 60.0 + 2 * seconds)
    topic = f"bench.r3.steady-{uuid4().hex[:8]}"
    create(bench.kafka, topic)
    command = [*flow.program(), *flow_arguments(bench, topic, IN_FLIGHT, "latency", window).command_line()]
    publish = [sys.executable, "-m", "bench.contenders.load", "--kafka", bench.kafka, "--topic", topic]
    # What is published before the contender has started is old, and over before the warm-up is.
    publish += ["--per-s", str(PER_S), "--seconds", str(seconds + AHEAD_S)]
    with started(command, bench.directory) as child, started(publish, bench.directory, name="load"):
        return flow_figures(child.result(deadline_s(window)))


def _cpu_percent(round_: Round, contender_name: str) -> float:
    seconds = round_.figure(STEADY, contender_name, "seconds")
    return 100 * round_.figure(STEADY, contender_name, "cpu_s") / seconds


def _growth_percent(round_: Round, case: str) -> float:
    first, last = (round_.figure(case, OURS, f"rss_{end}_bytes") for end in ("first", "last"))
    return 100 * (last - first) / first


def _peer_lines() -> list[Line]:
    lines = []
    for flow in (PARALLEL_CONSUMER, AIOKAFKA):
        lines += [
            figure_line(f"The same, median: {flow.name}", (STEADY, flow.name, "p50_ms"), "ms"),
            figure_line(f"The same, 99th percentile: {flow.name}", (STEADY, flow.name, "p99_ms"), "ms"),
            Line(f"CPU at 100 records/s: {flow.name}", partial(_cpu_percent, contender_name=flow.name), "%"),
        ]
    return lines


AT_MOST_100: Final = at_most(100)
# Flat: what comes and goes with the collector and the allocator is a few per cent, a leak isn't.
FLAT: Final = at_most(5, "flat (≤ 5 %)")
RSS: Final = missed("memory-of-a-processor")
LATENCY: Final = missed("start-and-latency")
LITTLE_WORK: Final = missed("cpu-at-little-work")
LINES: Final = (
    figure_line(
        "Registry at N = 2,000: resident memory at most", (MEMORY, OURS, "rss_mb"), "MB", target=AT_MOST_100, why=RSS
    ),
    figure_line("The same, ten minutes", (LONG_MEMORY, OURS, "rss_mb"), "MB", target=AT_MOST_100, why=RSS),
    Line(
        "Growth from the first to the last of ten minutes",
        partial(_growth_percent, case=LONG_MEMORY),
        "%",
        FLAT,
        why=RSS,
    ),
    Line("Growth from the first to the last tenth of a minute", partial(_growth_percent, case=MEMORY), "%"),
    figure_line(
        "The line through all samples of ten minutes",
        (LONG_MEMORY, OURS, "rss_bytes_per_s"),
        "kB/min",
        factor=60 / 1000,
    ),
    figure_line("Parallel Consumer at N = 2,000", (MEMORY, THEIRS, "rss_mb"), "MB"),
    figure_line("Start-up to the first record", (START, OURS, "first_record_s"), "s", target=at_most(3), why=LATENCY),
    figure_line(
        "Publish to start of the handler, median", (STEADY, OURS, "p50_ms"), "ms", target=at_most(4), why=LATENCY
    ),
    figure_line("The same, 99th percentile", (STEADY, OURS, "p99_ms"), "ms", target=at_most(20), why=LATENCY),
    Line(
        "CPU at 100 records/s, of a core",
        partial(_cpu_percent, contender_name=OURS),
        "%",
        at_most(10),
        why=LITTLE_WORK,
    ),
    *_peer_lines(),
    figure_line(
        "CPU idle, of a core", (IDLE, OURS, "idle_cpu_share"), "%", target=at_most(1), factor=100, why=LITTLE_WORK
    ),
)

ROW: Final = Row(3, "A processor at rest and at little work", ABOUT, _cases, LINES, warm_up=_warm_up)
