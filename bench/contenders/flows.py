"""The flow contenders of rows 1, 2, 3 and 7: how each is started, what it doesn't do, and between which records."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from bench.contenders.arguments import FlowArguments
from bench.contenders.parallel_consumer import flow as parallel_consumer
from bench.contenders.peers_environment import peer_version, peers_python
from bench.harness.process import run_flow
from bench.harness.row import Bench, Contender, Figures

START_S: Final = 20.0
"""What a contender may take until its first record, s, and as much again to say that it gave up."""
SLOWER: Final = 6.0
"""It may be so many times slower than expected before it is given up."""
LONG_S: Final = 60.0
"""What is expected to take longer than this is given up after half as long again and a minute."""
LEAST_S: Final = 3.0
"""A window shorter than this says too little: its turn fails."""
WARM_S: Final = 2.5
JVM_WARM_S: Final = 10.0
"""How long a contender works before it is measured: what is compiled while it runs takes its time for that."""


class ShortWindowError(ValueError):
    """A contender was so fast that it was measured for too short a time: give its row more records."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A program that takes the contract's arguments.

    Attributes:
        name: in the results.
        program: makes its command, and whatever it needs first.
        lacks: what it doesn't do that the registry does.
        version: names what is measured where that is somebody else's; nothing is read before it is asked.
        warm_s: how long it is to work before it is measured, s.
    """

    name: str
    program: Callable[[], list[str]]
    lacks: str = ""
    version: Callable[[], str] = lambda: ""
    warm_s: float = WARM_S


@dataclass(frozen=True, slots=True)
class Window:
    """From which call's end to which call's end it is measured, when it is given up, s, and how short it may be, s."""

    from_record: int
    to_record: int
    limit_s: float
    least_s: float = LEAST_S

    @staticmethod
    def lasting(expected_per_s: float, warm_s: float, seconds: float, *, warming_per_s: float = 0.0) -> Window:
        """Return a window that lasts about so long after about so long a warm-up, at the expected rate.

        Args:
            expected_per_s: records a second.
            warm_s: of the warm-up, s.
            seconds: of the window.
            warming_per_s: records a second until it is warm, where that is another rate.
        """
        first = max(1, round((warming_per_s or expected_per_s) * warm_s))
        last = first + max(1, round(expected_per_s * seconds))
        expected_s = warm_s + seconds
        limit_s = 60 + 1.5 * expected_s if expected_s > LONG_S else START_S + SLOWER * expected_s
        return Window(first, last, limit_s)


def flow_arguments(
    bench: Bench, topic: str, in_flight: int, handler: str, window: Window, beside_pid: int = 0
) -> FlowArguments:
    """Return the arguments of one run, under a group that nobody has used."""
    group = f"bench.{uuid4().hex[:12]}"
    records = (window.from_record, window.to_record)
    return FlowArguments(bench.kafka, topic, group, in_flight, handler, *records, window.limit_s, beside_pid)


def contender(
    flow: Flow,
    topic: str,
    in_flight: int,
    handler: str,
    window: Window,
    *options: str,
    name: str = "",
    processes: int = 1,
) -> Contender:
    """Return a contender that consumes a topic filled beforehand.

    Its figures are those of `bench.harness.process.flow_figures`, and of `shares_of_limit` where calls take time.

    Args:
        flow: which program.
        topic: what it consumes.
        in_flight: N, of each process.
        handler: `noop`, `timed` or `latency`.
        window: between which records.
        options: of this program alone.
        name: in the results where it isn't the program's.
        processes: of one group; the registry alone can be several.
    """
    several = () if processes == 1 else ("--processes", str(processes))

    def measure(bench: Bench) -> Figures:
        arguments = flow_arguments(bench, topic, in_flight, handler, window)
        command = [*flow.program(), *arguments.command_line(), *options, *several]
        figures = run_flow(bench, command, name="contender", deadline_s=deadline_s(window))
        require_window(bench, window, figures)
        return figures if handler != "timed" else {**figures, **shares_of_limit(figures, processes * in_flight)}

    return Contender(name or flow.name, measure, flow.lacks, flow.version(), deadline_s(window) + START_S)


def require_window(bench: Bench, window: Window, figures: Figures) -> None:
    """Raise ShortWindowError when it was measured for too short a time; a smoke may be."""
    if not bench.quick and figures["seconds"] < window.least_s:
        raise ShortWindowError(f"measured for {figures['seconds']:.2f} s only, expected {window.least_s:g} s at least")


def deadline_s(window: Window) -> float:
    """Return when a run is broken off from outside: after it should have given up by itself."""
    return window.limit_s + START_S


def shares_of_limit(figures: Figures, in_flight: int) -> Figures:
    """Return `share_of_limit` and `share_of_ordered_limit`: the rate by N / mean call as measured, and as ordered.

    By Little's law the first is the mean number of calls in flight by N. That mean is the integral over the window
    (`busy_s`): calls that are under way at its ends count for the time within it. The second is the first by how much
    longer the calls that ended in the window took than they were told to: a contender that is late to end its calls
    loses that too.
    """
    share = figures["busy_s"] / (figures["seconds"] * in_flight)
    ordered = figures["ordered_s"] / figures["calls_s"]
    return {
        "mean_ordered_s": figures["ordered_s"] / figures["records"],
        "share_of_limit": share,
        "share_of_ordered_limit": share * ordered,
    }


def _ours(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", module]


def _peer(module: str) -> Callable[[], list[str]]:
    return lambda: [peers_python(), "-m", f"bench.contenders.{module}"]


REGISTRY: Final = Flow("registry", _ours("bench.contenders.registry"))
BATCH: Final = Flow(
    "batch strategy",
    _ours("bench.contenders.batch"),
    "No registry: one slow call holds up its whole batch, and a crash delivers the batch again.",
)
BARE_LOOP: Final = Flow(
    "bare loop",
    _ours("bench.bare_loop"),
    "Nothing but consume, wait record, commit, no-op, tombstone: no handlers that wait, no time-outs, retries, dead "
    "letters, rebalances, renewals, metrics, logs.",
)
PLAIN: Final = Flow(
    "plain consume and commit",
    lambda: [*_ours("bench.bare_loop")(), "--plain"],
    "No registry, no dead letters, no retries. One call after the other, and commits of what has been called: after a "
    "crash the last half second is called again, and nobody can ask which records were out.",
)
PARALLEL_CONSUMER: Final = Flow(
    "Parallel Consumer",
    lambda: parallel_consumer.flow_command("unordered"),
    parallel_consumer.LACKS,
    lambda: parallel_consumer.VERSION,
    JVM_WARM_S,
)
PARALLEL_CONSUMER_BY_KEY: Final = Flow(
    "Parallel Consumer, KEY",
    lambda: parallel_consumer.flow_command("key"),
    f"{parallel_consumer.LACKS} In this order, one call at a time of each key.",
    lambda: parallel_consumer.VERSION,
    JVM_WARM_S,
)
AIOKAFKA: Final = Flow(
    "aiokafka, gather and commit",
    _peer("aiokafka_gather"),
    "No registry, no dead letters, no retries. One slow call holds up its whole batch. A crash delivers the batch "
    "again to every handler in it, and nobody can ask which records were out.",
    lambda: peer_version("aiokafka"),
)
ARROYO: Final = Flow(
    "arroyo",
    _peer("arroyo_peer"),
    "No registry; dead letters only for records that a strategy calls invalid. Results leave in order: the commit "
    "waits for the oldest call, and so does everything once the queue is full. A crash delivers again what wasn't "
    "committed.",
    lambda: peer_version("sentry-arroyo"),
)
FASTSTREAM: Final = Flow(
    "FastStream",
    _peer("faststream_peer"),
    "At most once: what was handed out is committed on a timer, done or not, so a crash loses it. No registry, no dead "
    "letters.",
    lambda: peer_version("faststream"),
)
SHARE_CONSUMER: Final = Flow(
    "share consumer",
    _ours("bench.contenders.share_consumer"),
    "A preview in this client. No registry, and no dead letters before KIP-1191. No lease can be renewed: what takes "
    "longer than the lock (30 s, at most 60 s by the broker's default) is delivered again meanwhile, five times at "
    "most, then it is dropped. Nobody can ask which records are out.",
)
