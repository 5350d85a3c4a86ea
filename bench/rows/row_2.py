"""Row 2: the processor's ceiling. What a record costs when its handler costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.contenders.flows import (
    AIOKAFKA,
    ARROYO,
    BARE_LOOP,
    FASTSTREAM,
    PARALLEL_CONSUMER,
    REGISTRY,
    SHARE_CONSUMER,
    Flow,
    Window,
    contender,
)
from bench.contenders.load import Mixture, Share, fill, mean_call_s
from bench.harness.row import Bench, Case, Contender, Line, Row
from bench.harness.target import at_least, at_most
from bench.rows.figure_lines import figure_line, ratio_line

ABOUT: Final = """\
Records of 200 bytes (and a key of 15) in 4 partitions, lz4, and a handler that does nothing. The registry is `python -m
waitreg processor` with everything on: start checks, metrics (read every 5 s), INFO logs, retries, rebalances; settings
are its defaults but for `linger_ms = 5`, which its description gives for throughput. It writes two
records for each that it reads; nobody else here writes any, but for the bare loop.

*The bare loop* (`bench/bare_loop.py`) does what the pattern itself takes and nothing else, without an event loop and
without workers: consume, wait record with all its headers, commit of the acknowledged prefix, no-op, tombstone.

*Client core*: records by second of the contender's own processor time (user and system, all threads, so librdkafka's
and the JVM's compilers and collectors too). Broker, producer of the records and harness don't count. On two cores that
the broker needs as well, that is what says how contenders compare; records by second say what this machine gave.

N = 50, but for those who commit a batch before they take the next: 500, which for the share consumer is the default.
Calls of 1 ms at N = 100 are timers in the registry and `Thread.sleep` in the Parallel Consumer; a timer of 1 ms takes
longer on a busy event loop, so the mean call as measured stands beside.

*Two processes* of one group share the partitions evenly; both and the single one are measured by turns, two as one
window in which both were at work. With a no-op they and the broker want more than two cores, so what is added up there
is the machine; the same with calls that wait (10 % 1 s, 90 % 200 ms, N = 500 each) shows what the group adds.
"""

CEILING: Final = "no-op"
PEERS: Final = "no-op, peers"
OTHERS: Final = "no-op, in batches"
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

# Between these records each is measured; how long that takes is this machine's business, about 5 to 8 s.
CEILING_WINDOW: Final = Window(100_000, 400_000, 120.0)
PEERS_WINDOW: Final = Window(100_000, 350_000, 120.0)
OTHERS_WINDOWS: Final = {
    AIOKAFKA: Window(20_000, 120_000, 120.0),
    SHARE_CONSUMER: Window(50_000, 300_000, 120.0),
    FASTSTREAM: Window(4_000, 28_000, 120.0),
}
SHORT_WINDOW: Final = Window(50_000, 200_000, 120.0)
TWO_WINDOW: Final = Window(150_000, 450_000, 120.0)
NOOP_RECORDS: Final = 620_000
SHORT_RECORDS: Final = 230_000
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
    return [
        Case(CEILING, [_noop(BARE_LOOP, CEILING_WINDOW), _ours(CEILING_WINDOW)], turns=2, prepare=_fill_noop),
        Case(
            PEERS,
            [_ours(PEERS_WINDOW), _noop(PARALLEL_CONSUMER, PEERS_WINDOW), _noop(ARROYO, PEERS_WINDOW)],
            turns=2,
            prepare=_fill_noop,
        ),
        Case(OTHERS, [_noop(flow, window, BATCH) for flow, window in OTHERS_WINDOWS.items()], prepare=_fill_noop),
        Case(MILLISECOND, [_short(REGISTRY, *LINGER), _short(PARALLEL_CONSUMER)], turns=2, prepare=_fill_short),
        Case(TWO_CASE, [_ours(TWO_WINDOW, name=ONE), _ours(TWO_WINDOW, 2, TWO)], prepare=_fill_noop),
        Case(TWO_WAITING_CASE, [_waiting(1, ONE), _waiting(2, TWO)], prepare=_fill_waiting),
    ]


def _quick_cases() -> list[Case]:
    both = [_noop(BARE_LOOP, QUICK_WINDOW), _ours(QUICK_WINDOW)]
    two = [_ours(QUICK_WINDOW, name=ONE), _ours(QUICK_WINDOW, 2, TWO)]
    return [Case(CEILING, both, prepare=_fill_quick), Case(TWO_CASE, two, prepare=_fill_quick)]


def _noop(flow: Flow, window: Window, in_flight: int = IN_FLIGHT) -> Contender:
    return contender(flow, NOOP_TOPIC, in_flight, "noop", window)


def _ours(window: Window, processes: int = 1, name: str = "") -> Contender:
    options = (*LINGER, "--processes", str(processes))
    return contender(REGISTRY, NOOP_TOPIC, IN_FLIGHT, "noop", window, *options, name=name)


def _short(flow: Flow, *options: str) -> Contender:
    return contender(flow, SHORT_TOPIC, SHORT_IN_FLIGHT, "timed", SHORT_WINDOW, *options)


def _waiting(processes: int, name: str) -> Contender:
    expected_per_s = processes * WAITING_IN_FLIGHT / mean_call_s(WAITING)
    window = Window.lasting(expected_per_s, WAITING_WARM_S, WAITING_SECONDS)
    options = ("--processes", str(processes))
    return contender(REGISTRY, WAITING_TOPIC, WAITING_IN_FLIGHT, "timed", window, *options, name=name)


def _fill_noop(bench: Bench) -> None:
    fill(bench.kafka, NOOP_TOPIC, NOOP_RECORDS)


def _fill_short(bench: Bench) -> None:
    fill(bench.kafka, SHORT_TOPIC, SHORT_RECORDS, SHORT)


def _fill_waiting(bench: Bench) -> None:
    # Twice what is measured: one of the two must not have come to its partitions' end while the other goes on.
    seconds = 2 * (WAITING_WARM_S + WAITING_SECONDS)
    fill(bench.kafka, WAITING_TOPIC, round(2 * WAITING_IN_FLIGHT / mean_call_s(WAITING) * seconds), WAITING)


def _fill_quick(bench: Bench) -> None:
    fill(bench.kafka, NOOP_TOPIC, QUICK_RECORDS)


OURS: Final = REGISTRY.name
THEIRS: Final = PARALLEL_CONSUMER.name


def _cost(text: str, case: str, contender_name: str) -> list[Line]:
    return [
        figure_line(text, (case, contender_name, RATE), "records/s"),
        figure_line(f"{text}: client CPU a record", (case, contender_name, CPU), "µs"),
    ]


def _lines() -> list[Line]:
    return [
        figure_line("Registry", (CEILING, OURS, RATE), "records/s", aim=at_least(50_000)),
        figure_line("Bare loop", (CEILING, BARE_LOOP.name, RATE), "records/s"),
        ratio_line(
            "Registry / bare loop", (CEILING, OURS, RATE), (CEILING, BARE_LOOP.name, RATE), target=at_least(0.75)
        ),
        figure_line("Registry: client CPU a record", (CEILING, OURS, CPU), "µs", target=at_most(20)),
        figure_line("Bare loop: client CPU a record", (CEILING, BARE_LOOP.name, CPU), "µs"),
        *_cost("Parallel Consumer, UNORDERED", PEERS, THEIRS),
        ratio_line(
            "Registry / Parallel Consumer, by client core",
            (PEERS, OURS, PER_CORE),
            (PEERS, THEIRS, PER_CORE),
            target=at_least(1.3),
        ),
        *_cost("arroyo, RunTask", PEERS, ARROYO.name),
        ratio_line(
            "Registry / arroyo, by client core",
            (PEERS, OURS, PER_CORE),
            (PEERS, ARROYO.name, PER_CORE),
            target=at_least(2),
        ),
        *(line for flow in OTHERS_WINDOWS for line in _cost(flow.name, OTHERS, flow.name)),
        *_millisecond_lines(),
        *_two_processes_lines(),
    ]


def _millisecond_lines() -> list[Line]:
    return [
        ratio_line(
            "1 ms: registry / Parallel Consumer, by client core",
            (MILLISECOND, OURS, PER_CORE),
            (MILLISECOND, THEIRS, PER_CORE),
            target=at_least(1.45),
        ),
        *(
            line
            for name in (OURS, THEIRS)
            for line in (
                *_cost(f"1 ms: {name}", MILLISECOND, name),
                figure_line(
                    f"1 ms: {name}: mean call as measured", (MILLISECOND, name, "mean_call_s"), "ms", factor=1e3
                ),
            )
        ),
    ]


def _two_processes_lines() -> list[Line]:
    return [
        ratio_line("Two processes / one", (TWO_CASE, TWO, RATE), (TWO_CASE, ONE, RATE), target=at_least(1.8)),
        ratio_line("Two processes / one, by client core", (TWO_CASE, TWO, PER_CORE), (TWO_CASE, ONE, PER_CORE)),
        ratio_line(
            "Two processes / one, calls that wait",
            (TWO_WAITING_CASE, TWO, RATE),
            (TWO_WAITING_CASE, ONE, RATE),
            target=at_least(1.8),
        ),
    ]


ROW: Final = Row(2, "The processor's ceiling", ABOUT, _cases, _lines())
