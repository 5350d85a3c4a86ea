"""The registry itself: `waitreg processor` as a user runs it, with a handler that meters.

Everything is on as it is by default: metrics (read every few seconds, as Prometheus would), INFO logs, retries, start
checks. Settings are the product's defaults; what differs is in `processor_settings`. Several processes of one group
are measured as one, while all of them are at work.

Options: `linger_ms` and `handler_timeout_s` as the settings, `processes` of the group (1), `idle_s` to measure idling
after the last record (0).
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import fmean
from typing import Any, Final

from bench.contenders.flow_program import FlowArguments
from bench.contenders.load import delete
from bench.contenders.meter import NS_PER_S, Mark, between, cpu_ns_of, started_ns_of
from bench.contenders.metered_handler import MeterOrder
from bench.contenders.product import processor_settings, waitreg
from bench.harness.process import Child, started
from bench.harness.row import Bench
from waitreg.local.environment import as_environment
from waitreg.local.ports import LOOPBACK, free_ports

POLL_S: Final = 0.1
SCRAPE_EVERY_S: Final = 5.0
# Marks of all processes together within a shared window.
SHARED_MARKS: Final = 200
# After the last record, before idling is measured: its tombstone, its commit.
SETTLE_S: Final = 3.0


class Processor:
    """One running processor, and what is seen of it from outside."""

    def __init__(self, child: Child, order: MeterOrder, port: int) -> None:
        self.child = child
        self.order = order
        self.started_ns = started_ns_of(child.pid)
        self._port = port
        self._scraped_s = time.monotonic()

    def look(self) -> list[Mark]:
        """Return its marks so far, and read its metrics if that is due."""
        self.child.require_running()
        marks, now_s = self.order.written(), time.monotonic()
        if marks and now_s - self._scraped_s >= SCRAPE_EVERY_S:
            self._scraped_s = now_s
            urllib.request.urlopen(f"http://{LOOPBACK}:{self._port}/metrics", timeout=5).read()
        return marks


def measure(bench: Bench, arguments: FlowArguments, **own: Any) -> dict[str, float]:
    """Run the processor of the measured checkout with settings of its own, and return the contenders' line."""
    variables = as_environment(processor_settings(arguments, **own))
    try:
        waitreg(bench, variables, "topics", "create")
        with _processors(bench, variables, arguments) as processors:
            line = _measured(processors, arguments)
            idle_s = arguments.options.get("idle_s", 0)
            return {**line, **(_idle(processors, idle_s) if idle_s else {})}
    finally:
        if not arguments.options.get("keep_topics"):
            delete(arguments.kafka, f"{arguments.group}.wait", f"{arguments.group}.dlq")


@contextmanager
def _processors(bench: Bench, variables: dict[str, str], arguments: FlowArguments) -> Iterator[list[Processor]]:
    command = (str(bench.product.waitreg), "processor")
    count, calls = arguments.options.get("processes", 1), (arguments.from_record, arguments.to_record)
    every = 0 if count == 1 else max(1, (calls[1] - calls[0]) // SHARED_MARKS)
    marks = sorted({1, *calls}) if count == 1 else [1]
    with ExitStack() as resources:
        found: list[Processor] = []
        for number, port in enumerate(free_ports(count), 1):
            file = str(bench.directory / f"marks-{number}")
            order = MeterOrder(arguments.handler, file, marks, every, arguments.broker_pid)
            own = {**variables, **order.as_environment(), "WAITREG_TELEMETRY__PORT": str(port)}
            child = resources.enter_context(started(command, bench.directory, own, name="processor"))
            found.append(Processor(child, order, port))
        yield found


def _measured(processors: Sequence[Processor], arguments: FlowArguments) -> dict[str, float]:
    """Wait until the last record is done and return the line."""
    deadline_s, several = time.monotonic() + arguments.limit_s, len(processors) > 1
    while time.monotonic() < deadline_s:
        seen = [processor.look() for processor in processors]
        if several:
            line = shared_window(seen, arguments.from_record, arguments.to_record)
            if line is not None:
                return line
        elif seen[0] and seen[0][-1].calls >= arguments.to_record:
            return _line_of_one(processors[0], seen[0], arguments.from_record)
        time.sleep(POLL_S)
    raise TimeoutError(f"{arguments.to_record} calls weren't over after {arguments.limit_s:g} s")


def _line_of_one(processor: Processor, marks: Sequence[Mark], from_record: int) -> dict[str, float]:
    first = next(mark for mark in marks if mark.calls == from_record)
    # From the start of the process to the end of the first call, which takes no time unless it is `timed`.
    first_record_s = (marks[0].clock_ns - processor.started_ns) / NS_PER_S
    return {**between(first, marks[-1]), "first_record_s": first_record_s}


def shared_window(processes: Sequence[Sequence[Mark]], from_calls: int, to_calls: int) -> dict[str, float] | None:
    """Return the line of several processes while all of them were at work; None until enough calls are over.

    What each process did is taken between its own marks next to the window's ends, half a per cent of it apart.
    """
    if not all(processes):
        return None
    first_ns, last_ns = max(marks[0].clock_ns for marks in processes), min(marks[-1].clock_ns for marks in processes)
    moments = sorted(mark.clock_ns for marks in processes for mark in marks if first_ns <= mark.clock_ns <= last_ns)
    states = [[_latest(marks, ns) for marks in processes] for ns in moments]
    within = [state for state in states if _calls(state) >= from_calls]
    ended = [state for state in within if _calls(state) >= to_calls - from_calls + _calls(within[0])]
    if not ended:
        return None
    lines = [between(first, last) for first, last in zip(within[0], ended[0], strict=True)]
    summed = {name: sum(line[name] for line in lines) for name in lines[0]}
    return {**summed, "seconds": fmean(line["seconds"] for line in lines)}


def _calls(state: Sequence[Mark]) -> int:
    return sum(mark.calls for mark in state)


def _latest(marks: Sequence[Mark], moment_ns: int) -> Mark:
    return max((mark for mark in marks if mark.clock_ns <= moment_ns), key=lambda mark: mark.clock_ns)


def _idle(processors: Sequence[Processor], idle_s: float) -> dict[str, float]:
    """Return the share of a core that the processors take while there is nothing to do."""
    time.sleep(SETTLE_S)
    before_ns, began_s = sum(cpu_ns_of(processor.child.pid) for processor in processors), time.monotonic()
    while time.monotonic() < began_s + idle_s:
        for processor in processors:
            processor.look()
        time.sleep(POLL_S)
    used_ns = sum(cpu_ns_of(processor.child.pid) for processor in processors) - before_ns
    return {"idle_cpu_share": used_ns / NS_PER_S / (time.monotonic() - began_s)}
