"""Row 10: calls of a service, with what an HTTP or gRPC call costs in a handler and in a client alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.contenders import callers
from bench.contenders.callers import Caller, Work, calling
from bench.contenders.flows import JVM_WARM_S, filled
from bench.harness.row import Bench, Case, Line, Pair, Place, Row

TOPIC: Final = "bench.r10.calls"
FEW, MANY = 50, 200
SLOW_MS: Final = 20
SECONDS: Final = 8.0
# From the records' publishing to the end of the measuring, s.
AHEAD_S: Final = 15.0
# More than any of them calls where this was written; calls that take a while are bounded by N instead.
PRODUCT_PER_S: Final = 16_000
PEER_PER_S: Final = 25_000
RECORDS: Final = round(PEER_PER_S * (JVM_WARM_S + AHEAD_S))
QUICK_RECORDS: Final = 20_000
OURS: Final = (callers.HTTP_PUSH, callers.GRPC_PUSH, callers.WITH_AIOHTTP, callers.PLAIN_FUNCTION)
BARE: Final = (callers.BARE_AIOHTTP, callers.BARE_HTTPTOOLS, callers.BARE_LIBCURL, callers.JAVA_CLIENT)
COMPARED: Final = (*OURS, *BARE, callers.PARALLEL_CONSUMER)
# The library that HTTP push and gRPC push are made of.
BARE_HTTP: Final = callers.BARE_HTTPTOOLS
BARE_GRPC: Final = callers.BARE_LIBCURL
PER_S: Final = "calls_per_s"
PER_CORE: Final = "calls_per_cpu_s"
CPU: Final = "cpu_us_per_call"


def case_name(in_flight: int, delay_ms: int) -> str:
    """Return the name of a case."""
    return f"N = {in_flight}{f', {delay_ms} ms' if delay_ms else ''}"


CASES: Final = tuple((in_flight, delay_ms) for delay_ms in (0, SLOW_MS) for in_flight in (FEW, MANY))


def _cases(bench: Bench) -> Sequence[Case]:
    if bench.quick:
        work = Work(TOPIC, FEW, SLOW_MS, QUICK_RECORDS, 0.5)
        pushes = (callers.HTTP_PUSH, callers.GRPC_PUSH)
        return [Case(case_name(FEW, SLOW_MS), [calling(caller, work) for caller in pushes])]
    fill = filled(TOPIC, RECORDS)
    return [
        Case(case_name(*case), [calling(caller, _work(*case)) for caller in COMPARED], prepare=fill) for case in CASES
    ]


def _work(in_flight: int, delay_ms: int) -> Work:
    per_s = min(PRODUCT_PER_S, in_flight * 1000 / delay_ms) if delay_ms else PRODUCT_PER_S
    return Work(TOPIC, in_flight, delay_ms, round(per_s * AHEAD_S), SECONDS)


def _pairs(_: Bench) -> Sequence[Pair]:
    ours = [(f"{caller.name}, {case_name(MANY, 0)}", caller) for caller in (callers.HTTP_PUSH, callers.GRPC_PUSH)]
    return [Pair(name, calling(caller, _work(MANY, 0)).measure, (PER_S,), (CPU,)) for name, caller in ours]


def _place(case: str, caller: Caller, figure: str) -> Place:
    return case, caller.name, figure


def _cpu_lines(case: str) -> Sequence[Line]:
    return [Line(f"{caller.name}, {case}: CPU per call", _place(case, caller, CPU), "µs") for caller in COMPARED]


def _compared_lines(case: str, above_us: float | None = None) -> Sequence[Line]:
    ours, bare = _place(case, callers.HTTP_PUSH, CPU), _place(case, BARE_HTTP, CPU)
    grpc, bare_grpc = _place(case, callers.GRPC_PUSH, CPU), _place(case, BARE_GRPC, CPU)
    core, peer = (_place(case, caller, PER_CORE) for caller in (callers.HTTP_PUSH, callers.PARALLEL_CONSUMER))
    return (
        Line(f"HTTP push above {BARE_HTTP.name}, {case}: CPU per call", ours, "µs", above=bare, most=above_us),
        Line(f"HTTP push / {BARE_HTTP.name}, {case}: CPU per call", ours, to=bare),
        Line(f"gRPC push / {BARE_GRPC.name}, {case}: CPU per call", grpc, to=bare_grpc),
        Line(f"HTTP push / {callers.PARALLEL_CONSUMER.name}, {case}: by client core", core, to=peer),
    )


AT_ONCE: Final = case_name(MANY, 0)
LINES: Final = (
    *(line for case in CASES for line in _cpu_lines(case_name(*case))),
    *_compared_lines(AT_ONCE, above_us=65),
    *_compared_lines(case_name(MANY, SLOW_MS)),
    *(Line(f"{caller.name}, {AT_ONCE}: calls", _place(AT_ONCE, caller, PER_S), "per s") for caller in COMPARED),
)

ROW: Final = Row(10, "Calls of a service", _cases, LINES, pairs=_pairs)
