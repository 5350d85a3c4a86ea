"""The flow contenders of rows 1, 2, 3, 7 and 9: how each is started, and between which records it is measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final
from uuid import uuid4

from bench.contenders import parallel_consumer, registry
from bench.contenders.flow_program import FlowArguments
from bench.contenders.load import AT_ONCE, Mixture, fill
from bench.harness.process import BYTES_PER_MB, started
from bench.harness.row import ROOT, Bench, Contender, Figures
from wait_registry.errors import ConfigurationError

# What a contender may take until its first record, s, and again to say that it gave up.
START_S: Final = 20.0
# It may be this many times slower than expected; what is expected to take a minute, half as long again and a minute.
SLOWER: Final = 6.0
LONG_S: Final = 60.0
# A window shorter than this says too little: its turn fails.
LEAST_S: Final = 3.0
# How long a contender works before it is measured: what is compiled while it runs takes its time for that.
WARM_S: Final = 2.5
JVM_WARM_S: Final = 10.0
# Some 16 s of the bare loop.
WARM_UP_RECORDS: Final = 1_300_000


@dataclass(frozen=True, slots=True)
class Flow:
    """What consumes a topic and returns a line as `meter.between` makes it, after it has worked for `warm_s`.

    `noop_per_s` is about how many records per second it does where this was written, `warming_per_s` the same while a
    JVM compiles. On a faster machine the windows are shorter, down to `LEAST_S`.
    """

    name: str
    run: Callable[[Bench, FlowArguments], Mapping[str, float]]
    noop_per_s: float
    warm_s: float = WARM_S
    warming_per_s: float = 0.0

    def noop_window(self, seconds: float) -> Window:
        """Return a window of about this length for calls that take no time."""
        return Window.lasting(self.noop_per_s, self.warm_s, seconds, warming_per_s=self.warming_per_s)


@dataclass(frozen=True, slots=True)
class Window:
    """From which call's end to which call's end it is measured, when it is given up, s, and how short it may be, s."""

    from_record: int
    to_record: int
    limit_s: float
    least_s: float = LEAST_S

    @staticmethod
    def lasting(expected_per_s: float, warm_s: float, seconds: float, *, warming_per_s: float = 0.0) -> Window:
        """Return a window of about this length in seconds after a warm-up, at the expected rate."""
        first = max(1, round((warming_per_s or expected_per_s) * warm_s))
        last = first + max(1, round(expected_per_s * seconds))
        expected_s = warm_s + seconds
        return Window(first, last, 60 + 1.5 * expected_s if expected_s > LONG_S else START_S + SLOWER * expected_s)


def flow_arguments(
    bench: Bench, topic: str, in_flight: int, handler: str, window: Window, **options: Any
) -> FlowArguments:
    """Return the arguments of one run, under a group of its own."""
    records = (window.from_record, window.to_record, window.limit_s)
    group = f"bench.{uuid4().hex[:12]}"
    return FlowArguments(bench.kafka, topic, group, in_flight, handler, *records, options=options)


def measure_flow(flow: Flow, bench: Bench, arguments: FlowArguments, least_s: float = LEAST_S) -> dict[str, float]:
    """Have a flow consume a topic; return rates, CPU per record (all threads), memory in MB of 10^6 bytes.

    `share_of_limit` is, by Little's law, the mean number of calls in flight by N: calls under way at the window's ends
    count for the time within it. Raises ValueError when it was measured for less than `least_s`, which a smoke
    may be.
    """
    figures = dict(flow.run(bench, arguments))
    records, seconds, cpu_s = (figures[name] for name in ("records", "seconds", "cpu_s"))
    if not bench.quick and seconds < least_s:
        raise ValueError(f"measured for {seconds:.2f} s: give the row more records")
    figures |= {f"{name}_mb": figures.pop(f"{name}_bytes") / BYTES_PER_MB for name in ("rss", "rss_now")}
    figures |= {"records_per_s": records / seconds, "cpu_us_per_record": cpu_s / records * 1e6}
    if arguments.handler == "timed":
        slots = arguments.in_flight * arguments.options.get("processes", 1)
        figures["share_of_limit"] = figures["busy_s"] / (seconds * slots)
    return {**figures, "records_per_cpu_s": records / cpu_s}


def contender(
    flow: Flow, topic: str, in_flight: int, handler: str, window: Window, *, name: str = "", **options: Any
) -> Contender:
    """Return the contender of `measure_flow`; `options` are the flow's own."""

    def measure(bench: Bench) -> Figures:
        arguments = flow_arguments(bench, topic, in_flight, handler, window, **options)
        return measure_flow(flow, bench, arguments, window.least_s)

    return Contender(name or flow.name, measure)


def filled(topic: str, records: int, mixture: Mixture = AT_ONCE) -> Callable[[Bench], None]:
    """Return what has a topic hold at least this number of records, to prepare a case."""
    return lambda bench: fill(bench.kafka, topic, records, mixture)


def warm_up(topic: str, mixture: Mixture = AT_ONCE) -> Callable[[Bench], None]:
    """Return what has the bare loop read the beginning of a topic, so that the broker's code is compiled."""

    def work(bench: Bench) -> None:
        records = bench.size(500, WARM_UP_RECORDS)
        filled(topic, records, mixture)(bench)
        contender(BARE_LOOP, topic, 50, "noop", Window(1, records, 240.0, 0)).measure(bench)

    return work


def _program(*command: str) -> Callable[[Bench, FlowArguments], dict[str, float]]:
    """Return what runs a module of the benchmark in this environment."""
    return lambda bench, arguments: _line(bench, arguments, [sys.executable, "-m", *command, arguments.as_json()])


def _peer(name: str) -> Callable[[Bench, FlowArguments], dict[str, float]]:
    """Return what runs a Python peer in the peers' environment."""
    module = "bench.contenders.python_peers"
    return lambda bench, arguments: _line(bench, arguments, [_peers_python(), "-m", module, name, arguments.as_json()])


@cache
def _peers_python() -> str:
    """Return the peers' Python; makes their environment first where it isn't as locked."""
    done = subprocess.run(["sh", "setup/bench_peers.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigurationError(f"setup/bench_peers.sh can't make the peers' environment: {done.stderr.strip()}")
    return str(ROOT / done.stdout.strip())


def _parallel_consumer(order: str) -> Callable[[Bench, FlowArguments], dict[str, float]]:
    return lambda bench, arguments: _line(bench, arguments, parallel_consumer.command(bench, order, arguments))


def _line(bench: Bench, arguments: FlowArguments, command: list[str]) -> dict[str, float]:
    with started(command, bench.directory) as child:
        return child.result(arguments.limit_s + START_S)


REGISTRY: Final = Flow("registry", registry.measure, 53_000)
DEFERRED: Final = Flow("registry, deferred", partial(registry.measure, registration="deferred"), 150_000)
NOT_GATHERING: Final = Flow(
    "registry, deferred, gathering off", partial(registry.measure, registration="deferred", gather_ms=0), 150_000
)
OFF: Final = Flow("registry, off", partial(registry.measure, registration="off"), 150_000)
BY_KEY: Final = Flow("registry, off, by key", partial(registry.measure, registration="off", ordering="key"), 110_000)
BARE_LOOP: Final = Flow("bare loop", _program("bench.contenders.bare_loop"), 95_000)
PLAIN: Final = Flow("plain consume and commit", _program("bench.contenders.bare_loop", "plain"), 1_200_000)
PARALLEL_CONSUMER: Final = Flow("Parallel Consumer", _parallel_consumer("unordered"), 175_000, JVM_WARM_S, 115_000)
PARALLEL_CONSUMER_BY_KEY: Final = Flow("Parallel Consumer, KEY", _parallel_consumer("key"), 75_000, JVM_WARM_S, 40_000)
AIOKAFKA: Final = Flow("aiokafka, gather and commit", _peer("aiokafka"), 100_000)
ARROYO: Final = Flow("arroyo", _peer("arroyo"), 51_000)
SHARE_CONSUMER: Final = Flow("share consumer", _program("bench.contenders.share_consumer"), 250_000)
