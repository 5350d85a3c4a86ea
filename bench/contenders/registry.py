"""The registry itself: `waitreg processor` as a user runs it, with a handler that meters.

Everything is on as it is by default: metrics (read every few seconds, as Prometheus would), INFO logs, retries, start
checks. Settings are the product's defaults; what differs is an argument here. Several processes of one group begin
together, when each has partitions, and are measured as one. `--baseline` runs the demo's baseline instead.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import fmean, linear_regression
from typing import Final

from bench.contenders.flow_program import FlowArguments, flow_arguments, give_up, parser
from bench.contenders.load import delete
from bench.contenders.meter import NS_PER_S, Mark, between, cpu_ns_of, memory_of
from bench.contenders.metered_handler import HANDLER, Marks, MeterOrder
from bench.harness.process import end_with_parent, environment
from bench.harness.row import HERE
from wait_registry.local.ports import LOOPBACK, free_ports

POLL_S: Final = 0.1
SCRAPE_EVERY_S: Final = 5.0
SAMPLE_EVERY_S: Final = 1.0
# Marks of all processes together within a shared window.
SHARED_MARKS: Final = 200
# After the last record, before idling is measured: its tombstone, its commit.
SETTLE_S: Final = 3.0
# More than any of these settings asks for (a small N makes records wait); nothing is renewed meanwhile.
TTL_S: Final = 86_400
BASELINE: Final = (sys.executable, "-m", "wait_registry.demo.baseline")


class Processor:
    """One running processor, and what is seen of it from outside."""

    def __init__(self, command: Sequence[str], variables: dict[str, str], order: MeterOrder, port: int) -> None:
        self.order = order
        self.memory: list[tuple[float, float]] = []
        self.started_ns = time.monotonic_ns()
        self._port = port
        self._marks = Marks(order.file)
        self._scraped_s = self._sampled_s = time.monotonic()
        self._process = subprocess.Popen(
            command,
            cwd=Path(order.file).parent,  # no waitreg.toml and no .env of the checkout is read
            env={**variables, **order.as_environment(), "WAITREG_TELEMETRY__PORT": str(port), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            preexec_fn=end_with_parent,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def look(self) -> list[Mark]:
        """Return its marks so far, and sample its memory and metrics if that is due."""
        if (status := self._process.poll()) is not None:
            raise ChildProcessError(f"the processor ended by itself with status {status}")
        now_s = time.monotonic()
        if now_s - self._sampled_s >= SAMPLE_EVERY_S:
            self._sampled_s = now_s
            self.memory.append((now_s, memory_of(self.pid)[0]))
        if self._marks.read() and now_s - self._scraped_s >= SCRAPE_EVERY_S:
            self._scraped_s = now_s
            with suppress(OSError):  # the baseline has no metrics
                urllib.request.urlopen(f"http://{LOOPBACK}:{self._port}/metrics", timeout=5).read()
        return self._marks.seen

    def kill(self) -> None:
        """End it at once: its group isn't used again."""
        self._process.kill()
        self._process.wait()


def main() -> None:
    """Measure, and print the line."""
    made = parser(__doc__)
    made.add_argument("--waitreg", default=str(HERE.waitreg), help="of the checkout that is measured")
    made.add_argument("--baseline", action="store_true", help="run the demo's baseline")
    made.add_argument("--linger-ms", type=float, help="processor.linger_ms")
    made.add_argument("--handler-timeout-s", type=float, help="processor.handler_timeout_s")
    made.add_argument("--processes", type=int, default=1, help="processes of the group (1)")
    made.add_argument("--idle-s", type=float, default=0.0, help="after the last record, measure idling so long, s (0)")
    made.add_argument("--keep-topics", action="store_true", help="leave wait and dead letter topic behind")
    given = made.parse_args()
    arguments = flow_arguments(given)
    variables = environment(settings(arguments, given.linger_ms, given.handler_timeout_s))
    command = BASELINE if given.baseline else (given.waitreg, "processor")
    try:
        if not given.baseline:
            subprocess.run([given.waitreg, "topics", "create"], env=variables, check=True, stdout=sys.stderr)
        with _processors(command, variables, arguments, given.processes) as processors:
            line = _measured(processors, arguments)
            line |= _idle(processors, given.idle_s) if given.idle_s else {}
    finally:
        if not given.keep_topics:
            delete(arguments.kafka, f"{arguments.group}.wait", f"{arguments.group}.dlq")
    print(json.dumps(line), flush=True)


def settings(arguments: FlowArguments, linger_ms: float | None, timeout_s: float | None) -> dict[str, str]:
    """Return the processor's settings as variables: defaults, except one broker and what is given."""
    given = {
        "KAFKA__BOOTSTRAP_SERVERS": arguments.kafka,
        "WAIT__TOPIC": f"{arguments.group}.wait",
        "WAIT__PARTITIONS": 4,
        "WAIT__REPLICATION_FACTOR": 1,
        "WAIT__MIN_INSYNC_REPLICAS": 1,
        "DEAD_LETTER__TOPIC": f"{arguments.group}.dlq",
        "DEAD_LETTER__PARTITIONS": 1,
        "PROCESSOR__GROUP": arguments.group,
        "PROCESSOR__TOPICS": json.dumps([arguments.topic]),
        "PROCESSOR__HANDLER": HANDLER,
        "PROCESSOR__MAX_IN_FLIGHT": arguments.in_flight,
        "PROCESSOR__LINGER_MS": linger_ms,
        "PROCESSOR__HANDLER_TIMEOUT_S": timeout_s,
        "PROCESSOR__TTL_S": TTL_S,
    }
    return {f"WAITREG_{name}": str(value) for name, value in given.items() if value is not None}


@contextmanager
def _processors(
    command: Sequence[str], variables: dict[str, str], arguments: FlowArguments, count: int
) -> Iterator[list[Processor]]:
    calls = (arguments.from_record, arguments.to_record)
    every = 0 if count == 1 else max(1, (calls[1] - calls[0]) // SHARED_MARKS)
    marks = sorted({1, *calls}) if count == 1 else [1]
    with ExitStack() as resources:
        directory = resources.enter_context(tempfile.TemporaryDirectory(prefix="waitreg-bench-"))
        started: list[Processor] = []
        for number, port in enumerate(free_ports(count), 1):
            file = f"{directory}/marks-{number}"
            order = MeterOrder(arguments.handler, file, marks, every, arguments.broker_pid, gated=count > 1)
            started.append(Processor(command, variables, order, port))
            resources.callback(started[-1].kill)
        yield started


def _measured(processors: Sequence[Processor], arguments: FlowArguments) -> dict[str, float]:
    """Wait until the last record is done and return the line."""
    deadline_s = time.monotonic() + arguments.limit_s
    while True:
        if len(processors) > 1 and all(processor.order.has_arrived() for processor in processors):
            for processor in processors:
                processor.order.open_gate()
        seen = [processor.look() for processor in processors]
        if len(processors) > 1:
            # Its first mark shows that a process is up; from the second on it is at work.
            line = shared_window([marks[1:] for marks in seen], arguments.from_record, arguments.to_record)
            if line is not None:
                return line
        elif seen[0] and seen[0][-1].calls >= arguments.to_record:
            return _line_of_one(processors[0], arguments)
        if time.monotonic() > deadline_s:
            for processor in processors:
                processor.kill()
            give_up(arguments, sum(marks[-1].calls for marks in seen if marks))
        time.sleep(POLL_S)


def _line_of_one(processor: Processor, arguments: FlowArguments) -> dict[str, float]:
    marks = processor.look()
    first = next(mark for mark in marks if mark.calls == arguments.from_record)
    begin_s, end_s = first.clock_ns / NS_PER_S, marks[-1].clock_ns / NS_PER_S
    in_window = [sample for sample in processor.memory if begin_s <= sample[0] <= end_s]
    # From the start of the process to the end of the first call, which takes no time unless it is `timed`.
    first_record_s = (marks[0].clock_ns - processor.started_ns) / NS_PER_S
    return {**between(first, marks[-1]), **memory_trend(in_window), "first_record_s": first_record_s}


def memory_trend(samples: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return the means of the first and the last tenth of samples, and the slope of the line through all."""
    if len(samples) < 10:
        return {}
    tenth = len(samples) // 10
    seconds, sizes = zip(*samples, strict=True)
    trend = {"rss_bytes_per_s": linear_regression(seconds, sizes).slope}
    return {"rss_first_bytes": fmean(sizes[:tenth]), "rss_last_bytes": fmean(sizes[-tenth:]), **trend}


def shared_window(processes: Sequence[Sequence[Mark]], from_calls: int, to_calls: int) -> dict[str, float] | None:
    """Return the line of several processes while all of them were at work; None until enough calls are over.

    What each process did is taken between its own marks next to the window's ends, half a per cent of it apart.
    """
    if any(len(marks) < 2 for marks in processes) or sum(marks[-1].calls for marks in processes) < to_calls:
        return None
    moments = sorted({mark.clock_ns for marks in processes for mark in marks})
    first_ns, last_ns = max(marks[0].clock_ns for marks in processes), min(marks[-1].clock_ns for marks in processes)
    states = [[_latest(marks, ns) for marks in processes] for ns in moments if first_ns <= ns <= last_ns]
    begun = next((state for state in states if _calls(state) >= from_calls), None)
    enough = to_calls - from_calls + (_calls(begun) if begun else 0)
    ended = next((state for state in states if _calls(state) >= enough), None)
    if begun is None or ended is None:
        return None
    lines = [between(first, last) for first, last in zip(begun, ended, strict=True)]
    summed = {name: sum(line[name] for line in lines) for name in lines[0]}
    return {**summed, "seconds": fmean(line["seconds"] for line in lines)}


def _calls(state: Sequence[Mark]) -> int:
    return sum(mark.calls for mark in state)


def _latest(marks: Sequence[Mark], moment_ns: int) -> Mark:
    return max((mark for mark in marks if mark.clock_ns <= moment_ns), key=lambda mark: mark.clock_ns)


def _idle(processors: Sequence[Processor], idle_s: float) -> dict[str, float]:
    """Return the share of a core that the processors take while there is nothing to do."""
    time.sleep(SETTLE_S)
    before_ns, began_s = sum(cpu_ns_of(processor.pid) for processor in processors), time.monotonic()
    while time.monotonic() < began_s + idle_s:
        for processor in processors:
            processor.look()
        time.sleep(POLL_S)
    used_ns = sum(cpu_ns_of(processor.pid) for processor in processors) - before_ns
    return {"idle_cpu_share": used_ns / NS_PER_S / (time.monotonic() - began_s)}


if __name__ == "__main__":
    main()
