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


@dataclass(frozen=True, slots=True)
class Flow:
    """A program that takes the contract's arguments.

    Attributes:
        name: in the results.
        program: makes its command, and whatever it needs first.
        lacks: what it doesn't do that the registry does.
        version: names what is measured where that is somebody else's; nothing is read before it is asked.
    """

    name: str
    program: Callable[[], list[str]]
    lacks: str = ""
    version: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True)
class Window:
    """From the end of which call to the end of which it is measured, and when it is given up, s."""

    from_record: int
    to_record: int
    limit_s: float

    @staticmethod
    def lasting(expected_per_s: float, warm_s: float, seconds: float) -> Window:
        """Return a window that lasts about so long after about so long a warm-up, at the expected rate."""
        first = max(1, round(expected_per_s * warm_s))
        last = first + max(1, round(expected_per_s * seconds))
        return Window(first, last, START_S + SLOWER * (warm_s + seconds))


def flow_arguments(
    bench: Bench, topic: str, in_flight: int, handler: str, window: Window, beside_pid: int = 0
) -> FlowArguments:
    """Return the arguments of one run, under a group that nobody has used."""
    group = f"bench.{uuid4().hex[:12]}"
    records = (window.from_record, window.to_record)
    return FlowArguments(bench.kafka, topic, group, in_flight, handler, *records, window.limit_s, beside_pid)


def contender(
    flow: Flow, topic: str, in_flight: int, handler: str, window: Window, *options: str, name: str = ""
) -> Contender:
    """Return a contender that consumes a topic filled beforehand.

    Its figures are those of `bench.harness.process.flow_figures`, and those of `in_flight_figures`.

    Args:
        flow: which program.
        topic: what it consumes.
        in_flight: N.
        handler: `noop`, `timed` or `latency`.
        window: between which records.
        options: of this program alone.
        name: in the results where it isn't the program's.
    """

    def measure(bench: Bench) -> Figures:
        arguments = flow_arguments(bench, topic, in_flight, handler, window)
        command = [*flow.program(), *arguments.command_line(), *options]
        figures = run_flow(bench, command, name="contender", deadline_s=deadline_s(window))
        return in_flight_figures(figures, in_flight)

    return Contender(name or flow.name, measure, flow.lacks, flow.version(), deadline_s(window) + START_S)


def deadline_s(window: Window) -> float:
    """Return when a run is broken off from outside: after it should have given up by itself."""
    return window.limit_s + START_S


def in_flight_figures(figures: Figures, in_flight: int) -> Figures:
    """Add `share_of_limit`: the rate by N / mean call, which is the mean number of calls in flight by N.

    Where the contender knows it, that mean is the integral over the window (`busy_s`), with calls that were under way
    at its ends counted for the time within it. Else it is the rate times the mean of the calls that ended within: the
    same in the long run, and off by about N calls' remainders in a short window.
    """
    busy_s = figures.get("busy_s", figures["calls_s"])
    return {**figures, "share_of_limit": busy_s / (figures["seconds"] * in_flight)}


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
PARALLEL_CONSUMER: Final = Flow(
    "Parallel Consumer",
    lambda: parallel_consumer.flow_command("unordered"),
    parallel_consumer.LACKS,
    lambda: parallel_consumer.VERSION,
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
