"""The registry itself: `waitreg processor` as a user runs it, with a handler that meters.

Everything is on as it is by default: metrics (read every few seconds, as Prometheus would), INFO logs, retries, start
checks, the watch on broker and group. Settings are the product's defaults; what differs is an argument here. Several
processes of one group begin together, when each has partitions, and are measured as one (`shared_window`).
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from bench.contenders.arguments import FlowArguments, flow_arguments, parser
from bench.contenders.measured_run import give_up, print_line
from bench.contenders.memory_trend import Sample, memory_trend
from bench.contenders.meter import between
from bench.contenders.metered_handler import Marks, MeterOrder
from bench.contenders.process_usage import NS_PER_S, cpu_ns_of, memory_of
from bench.contenders.registry_settings import own_topics, registry_settings
from bench.contenders.shared_window import shared_window
from bench.harness.process import end_with_parent
from wait_registry.demo.environment import as_environment
from wait_registry.local.ports import LOOPBACK, free_ports
from wait_registry.settings.root import Settings

POLL_S: Final = 0.1
SCRAPE_EVERY_S: Final = 5.0
SAMPLE_EVERY_S: Final = 1.0
SHARED_MARKS: Final = 200
"""Marks of all processes together within a shared window."""
SETTLE_S: Final = 3.0
"""After the last record, before idling is measured: its tombstone, its commit."""


class Processor:
    """One `waitreg processor`, and what is seen of it from outside while it runs."""

    def __init__(self, settings: Settings, order: MeterOrder, directory: Path, program: Sequence[str]) -> None:
        self._port = settings.telemetry.port
        self.started_ns = time.monotonic_ns()
        self._process = subprocess.Popen(
            [sys.executable, "-m", *program],
            cwd=directory,  # no waitreg.toml and no .env of the checkout is read
            env={**os.environ, **as_environment(settings), **order.as_environment(), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            preexec_fn=end_with_parent,
        )
        self.order = order
        self._marks = Marks(order.file)
        self.memory: list[Sample] = []
        self._scraped_s = self._sampled_s = time.monotonic()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def look(self) -> Marks:
        """Read its new marks, sample its memory and its metrics if that is due, and return the marks.

        Raises:
            ChildProcessError: it has ended.
        """
        if (status := self._process.poll()) is not None:
            raise ChildProcessError(f"the processor ended by itself with status {status}")
        now_s = time.monotonic()
        if now_s - self._sampled_s >= SAMPLE_EVERY_S:
            self._sampled_s = now_s
            self.memory.append((now_s, memory_of(self.pid)[0]))
        if self._marks.seen and now_s - self._scraped_s >= SCRAPE_EVERY_S:
            self._scraped_s = now_s
            self._scrape()
        self._marks.read()
        return self._marks

    def kill(self) -> None:
        """End it at once; nobody takes up what it leaves."""
        self._process.kill()
        self._process.wait()

    def _scrape(self) -> None:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=5)
        try:
            connection.request("GET", "/metrics")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            print(f"/metrics was not answered: {error}", file=sys.stderr)
        finally:
            connection.close()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the line."""
    made = parser(__doc__)
    made.add_argument("--baseline", action="store_true", help="run wait_registry.demo.baseline instead")
    made.add_argument("--linger-ms", type=float, help="processor.linger_ms (the product's default)")
    made.add_argument("--handler-timeout-s", type=float, help="processor.handler_timeout_s (the product's default)")
    made.add_argument("--processes", type=int, default=1, help="processes of the group (1)")
    made.add_argument("--idle-s", type=float, default=0.0, help="after the last record, measure idling so long, s (0)")
    made.add_argument("--keep-topics", action="store_true", help="leave wait and dead letter topic behind")
    given = made.parse_args(argv)
    arguments = flow_arguments(given)
    settings = registry_settings(arguments, **_processor_settings(given))
    program = ["wait_registry.demo.baseline"] if given.baseline else ["wait_registry", "processor"]
    started = _processors(settings, arguments, given.processes, program)
    with own_topics(settings, given.keep_topics), started as processors:
        line = _measured(processors, arguments)
        if given.idle_s:
            line |= _idle(processors, given.idle_s)
    print_line(line)


def _processor_settings(given: argparse.Namespace) -> dict[str, Any]:
    names = ("linger_ms", "handler_timeout_s")
    return {name: getattr(given, name) for name in names if getattr(given, name) is not None}


@contextmanager
def _processors(
    settings: Settings, arguments: FlowArguments, count: int, program: Sequence[str]
) -> Iterator[list[Processor]]:
    calls = (arguments.from_record, arguments.to_record)
    every = 0 if count == 1 else max(1, (calls[1] - calls[0]) // SHARED_MARKS)
    marks = sorted({1, *calls}) if count == 1 else [1]
    with ExitStack() as resources:
        directory = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="waitreg-bench-")))
        started: list[Processor] = []
        for number, port in enumerate(free_ports(count), 1):
            own = settings.model_copy(update={"telemetry": settings.telemetry.model_copy(update={"port": port})})
            file = directory / f"marks-{number}"
            order = MeterOrder(arguments.handler, file, marks, every, arguments.beside_pid, gated=count > 1)
            started.append(Processor(own, order, directory, program))
            resources.callback(started[-1].kill)
        yield started


def _measured(processors: Sequence[Processor], arguments: FlowArguments) -> dict[str, float]:
    """Wait until the last record is through and return the line."""
    deadline_s = time.monotonic() + arguments.limit_s
    closed = len(processors) > 1
    while True:
        if closed and all(processor.order.has_arrived() for processor in processors):
            closed = False
            for processor in processors:
                processor.order.open_gate()
        seen = [processor.look().seen for processor in processors]
        if len(processors) > 1:
            # Its first mark shows that a process is up; from the second on it is at work.
            line = shared_window([marks[1:] for marks in seen], arguments.from_record, arguments.to_record)
            if line is not None:
                return line
        elif seen[0] and seen[0][-1].calls == arguments.to_record:
            return _line_of_one(processors[0], arguments)
        if time.monotonic() > deadline_s:
            for processor in processors:
                processor.kill()
            give_up(arguments, sum(marks[-1].calls for marks in seen if marks))
        time.sleep(POLL_S)


def _line_of_one(processor: Processor, arguments: FlowArguments) -> dict[str, float]:
    marks = processor.look().seen
    first = next(mark for mark in marks if mark.calls == arguments.from_record)
    begin_s, end_s = first.clock_ns / NS_PER_S, marks[-1].clock_ns / NS_PER_S
    in_window = [sample for sample in processor.memory if begin_s <= sample[0] <= end_s]
    return {
        **between(first, marks[-1]),
        **memory_trend(in_window),
        # From the start of the process to the end of the first call, which takes no time unless it is `timed`.
        "first_record_s": (marks[0].clock_ns - processor.started_ns) / NS_PER_S,
    }


def _idle(processors: Sequence[Processor], idle_s: float) -> dict[str, float]:
    """Return the share of a core that the processors take while there is nothing to do."""
    time.sleep(SETTLE_S)
    before_ns, began_s = sum(cpu_ns_of(processor.pid) for processor in processors), time.monotonic()
    end_s = began_s + idle_s
    while time.monotonic() < end_s:
        for processor in processors:
            processor.look()
        time.sleep(POLL_S)
    used_ns = sum(cpu_ns_of(processor.pid) for processor in processors) - before_ns
    return {"idle_cpu_share": used_ns / NS_PER_S / (time.monotonic() - began_s)}


if __name__ == "__main__":
    main()
