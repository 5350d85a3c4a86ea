"""Records that are published one by one at a steady rate while a contender waits for them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from bench.contenders.flows import Flow, Window, flow_arguments, measure_flow
from bench.contenders.load import create
from bench.harness.process import started
from bench.harness.row import Bench, Contender, Figures

IN_FLIGHT: Final = 50
# The producer continues this long after the last record that is measured, s.
AHEAD_S: Final = 4.0
LIMIT_S: Final = 60.0
LEAST_SHARE: Final = 0.9


@dataclass(frozen=True, slots=True)
class Trickle:
    """How many records per second are published, how long before a contender is measured, and how long it is, s."""

    per_s: int
    warm_s: int
    seconds: int

    @property
    def window(self) -> Window:
        """Return the window; a contender may take twice as long as the records do."""
        first, last = self.per_s * self.warm_s, self.per_s * (self.warm_s + self.seconds)
        return Window(first, last, LIMIT_S + 2 * (self.warm_s + self.seconds))


def case_name(per_s: int) -> str:
    """Return the name of a rate's case."""
    return f"{per_s:,} records a second"


def trickling(flow: Flow, trickle: Trickle) -> Contender:
    """Return a contender whose figures have the latency from publishing to the start of the handler too."""
    return Contender(flow.name, lambda bench: measure_trickle(flow, trickle, bench))


def measure_trickle(flow: Flow, trickle: Trickle, bench: Bench) -> Figures:
    """Have a contender wait for records that are published while it runs."""
    topic = f"bench.trickle-{uuid4().hex[:8]}"
    create(bench.kafka, topic)
    arguments = flow_arguments(bench, topic, IN_FLIGHT, "latency", trickle.window)
    rate, seconds = str(trickle.per_s), str(trickle.warm_s + trickle.seconds + AHEAD_S)
    # What is published before the contender has started is old, and done before the warm-up is.
    publish = [sys.executable, "-m", "bench.contenders.load", bench.kafka, topic, rate, seconds]
    with started(publish, bench.directory, name="load"):
        # A shorter window has records in it that had waited until the contender was there.
        return measure_flow(flow, bench, arguments, trickle.seconds * LEAST_SHARE)
