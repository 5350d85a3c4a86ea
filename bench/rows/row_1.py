"""Row 1: Little's law. N calls in flight finish N / mean call a second, if nobody waits for somebody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from bench.contenders.flows import (
    AIOKAFKA,
    BATCH,
    JVM_WARM_S,
    PARALLEL_CONSUMER,
    PARALLEL_CONSUMER_BY_KEY,
    REGISTRY,
    SHARE_CONSUMER,
    Flow,
    Window,
    contender,
)
from bench.contenders.load import Mixture, Share, fill, mean_call_s
from bench.harness.row import Bench, Case, Contender, Line, Row
from bench.harness.target import Target, at_least
from bench.rows.explained import missed
from bench.rows.figure_lines import figure_line

ABOUT: Final = """\
Every tenth call takes 1 s, the others 200 ms: the value of each of the topic's records says how long its call takes, in
a fixed shuffled order, so that all contenders make the very same calls. They sleep, asynchronously where the contender
is asynchronous. N of them may run at once.

*Share of the limit* is the rate by N / mean call, with the mean call as measured in the same window (a timer is late on
a busy machine), which is the mean number of calls in flight by N. All contenders know that number exactly, as the
integral over the window: calls under way at its ends count for the time within it. *Share of the ordered limit* is the
same with the mean of what those very calls were told to take: a contender whose own event loop or threads are late to
end its calls has longer calls as measured, and loses here what the share of the limit can't show. It is held to no
target, since a busy machine's timers count in it too.

The registry is `waitreg processor` with everything on, at its defaults but for N; `batch` is its other
strategy. The share consumer is given several members, which take turns: one alone waits for the slowest call of each
batch, as gather and batch do. The Parallel Consumer runs UNORDERED, and at N = 500 in KEY order too (100,000 keys); it
works for ten seconds before it is measured, the others for two and a half. What says the same at every N is measured at
some of them. No ratio is made between contenders here: each is held to its own limit.

*1 % at 60 s* is the same mixture with every hundredth call taking a minute, longer than most have patience for; its
time-out is 65 s then. Measured from the 44,000th call on, by when a minute has passed and the slots have filled with
slow calls. The rate still swings then (the first minute's slow calls end together), so the rate says little and the
share all. The share consumer isn't in it: its leases end before the calls do. The Parallel Consumer's two minutes are
in the first round of a FULL run alone.
"""

SLOW: Final[Mixture] = (Share(10, 1000), Share(90, 200))
SLOWEST: Final[Mixture] = (Share(1, 60_000), Share(10, 1000), Share(89, 200))
QUICK: Final[Mixture] = (Share(10, 50), Share(90, 10))
IN_FLIGHT: Final = (10, 50, 500, 2000)
SLOWEST_IN_FLIGHT: Final = 500
SLOWEST_CASE: Final = "1 % at 60 s"
SLOWEST_TIMEOUT_S: Final = 65
# Calls of the first minute, and of another one or so: worked out from N = 500 free slots that fill with slow calls.
SLOWEST_WINDOW: Final = Window(44_000, 66_000, 240.0)
SLOW_TOPIC: Final = "bench.r1.slow"
SLOWEST_TOPIC: Final = "bench.r1.slowest"

SECONDS: Final = 8.0
# What a batch's records wait for is its slowest call, which in a batch of 10 is a long one two times in three.
BATCH_SHARE: Final = {10: 0.38}
# Whoever works in batches, and how much of the limit that leaves.
OTHER_BATCH_SHARE: Final = 0.28
# At which N whom: the baseline everywhere, and of the others what differs.
MEASURED: Final[Mapping[Flow, Sequence[int]]] = {
    REGISTRY: IN_FLIGHT,
    PARALLEL_CONSUMER: (50, 500, 2000),
    PARALLEL_CONSUMER_BY_KEY: (500,),
    SHARE_CONSUMER: (50, 500, 2000),
    BATCH: IN_FLIGHT,
    AIOKAFKA: (50, 2000),
}
BY_BATCHES: Final = (BATCH, AIOKAFKA)
# What is registered ahead, and what a slow end takes, in seconds of the fastest contender.
AHEAD_S: Final = 3.5
SHARE: Final = "share_of_limit"
ORDERED_SHARE: Final = "share_of_ordered_limit"


class _Judged(TypedDict, total=False):
    target: Target
    why: str


def case_of(in_flight: int) -> str:
    """Return the name of the case with so many in flight."""
    return f"N = {in_flight}"


def _cases(bench: Bench) -> Sequence[Case]:
    if bench.quick:
        return [Case(case_of(10), _quick_contenders(), prepare=_fill_quick)]
    usual = [Case(case_of(count), _contenders(count), prepare=_fill_slow) for count in IN_FLIGHT]
    return [*usual, Case(SLOWEST_CASE, _slowest_contenders(bench.first_of_full), prepare=_fill_slowest)]


def _contenders(in_flight: int) -> list[Contender]:
    limit_per_s = in_flight / mean_call_s(SLOW)
    batches_per_s = limit_per_s * BATCH_SHARE.get(in_flight, OTHER_BATCH_SHARE)

    def timed(flow: Flow) -> Contender:
        expected_per_s = batches_per_s if flow in BY_BATCHES else limit_per_s
        window = Window.lasting(expected_per_s, flow.warm_s, SECONDS)
        return contender(flow, SLOW_TOPIC, in_flight, "timed", window)

    return [timed(flow) for flow, counts in MEASURED.items() if in_flight in counts]


def _slowest_contenders(with_peer: bool) -> list[Contender]:
    timeout = ("--handler-timeout-s", str(SLOWEST_TIMEOUT_S))
    ours = contender(REGISTRY, SLOWEST_TOPIC, SLOWEST_IN_FLIGHT, "timed", SLOWEST_WINDOW, *timeout)
    # It takes two minutes of its own.
    theirs = contender(PARALLEL_CONSUMER, SLOWEST_TOPIC, SLOWEST_IN_FLIGHT, "timed", SLOWEST_WINDOW)
    return [ours, theirs] if with_peer else [ours]


def _quick_contenders() -> list[Contender]:
    return [contender(flow, SLOW_TOPIC, 10, "timed", Window(50, 300, 120.0)) for flow in (REGISTRY, BATCH)]


def _fill_slow(bench: Bench) -> None:
    most_per_s = max(IN_FLIGHT) / mean_call_s(SLOW)
    fill(bench.kafka, SLOW_TOPIC, round(most_per_s * (JVM_WARM_S + SECONDS + AHEAD_S)), SLOW)


def _fill_slowest(bench: Bench) -> None:
    fill(bench.kafka, SLOWEST_TOPIC, SLOWEST_WINDOW.to_record + 4 * SLOWEST_IN_FLIGHT, SLOWEST)


def _fill_quick(bench: Bench) -> None:
    fill(bench.kafka, SLOW_TOPIC, 500, QUICK)


def _lines() -> list[Line]:
    lines = [line for in_flight in IN_FLIGHT for line in _shares(in_flight, REGISTRY)]
    lines += _slowest_shares(REGISTRY)
    lines += [
        line
        for flow in (BATCH, PARALLEL_CONSUMER, PARALLEL_CONSUMER_BY_KEY, AIOKAFKA, SHARE_CONSUMER)
        for in_flight in MEASURED[flow]
        for line in _shares(in_flight, flow)
    ]
    lines += _slowest_shares(PARALLEL_CONSUMER)
    lines += [
        figure_line(f"N = {count}: registry", (case_of(count), REGISTRY.name, "records_per_s"), "records/s")
        for count in IN_FLIGHT
    ]
    lines += [
        figure_line(f"Mean call as {how}, N = 2000", (case_of(2000), REGISTRY.name, name), "ms", factor=1e3)
        for how, name in (("measured", "mean_call_s"), ("ordered", "mean_ordered_s"))
    ]
    return lines


def _shares(in_flight: int, flow: Flow) -> Sequence[Line]:
    return _both_shares(case_of(in_flight), case_of(in_flight), flow)


def _slowest_shares(flow: Flow) -> Sequence[Line]:
    return _both_shares(SLOWEST_CASE, f"{SLOWEST_CASE}, N = {SLOWEST_IN_FLIGHT}", flow)


def _both_shares(case: str, shown: str, flow: Flow) -> Sequence[Line]:
    return [
        figure_line(f"Share of the limit, {shown}: {flow.name}", (case, flow.name, SHARE), **_judged_by(flow)),
        figure_line(f"Share of the ordered limit, {shown}: {flow.name}", (case, flow.name, ORDERED_SHARE)),
    ]


def _judged_by(flow: Flow) -> _Judged:
    return {"target": at_least(0.99), "why": missed("littles-law")} if flow is REGISTRY else {}


ROW: Final = Row(1, "Little's law", ABOUT, _cases, _lines())
