"""A broker that has worked before anybody is measured: the full pattern, for a quarter of a minute.

The first turns on a broker that has just started take up to a third more of its CPU than later ones: its code isn't
compiled yet.
"""

from __future__ import annotations

from typing import Final

from bench.contenders.flows import BARE_LOOP, Window, deadline_s, flow_arguments
from bench.contenders.load import AT_ONCE, Mixture, fill
from bench.harness.process import run_flow
from bench.harness.row import Bench

# Some 16 s of the bare loop.
RECORDS: Final = 1_300_000
QUICK_RECORDS: Final = 500
IN_FLIGHT: Final = 50


def warm_up(bench: Bench, topic: str, mixture: Mixture = AT_ONCE) -> None:
    """Have the bare loop read the beginning of a topic, and forget what it measured.

    Args:
        bench: of the round.
        topic: one of the row's, filled as far as it is needed.
        mixture: of the topic; the bare loop doesn't wait.
    """
    records = bench.size(QUICK_RECORDS, RECORDS)
    fill(bench.kafka, topic, records, mixture)
    window = Window(1, records, 240.0)
    arguments = flow_arguments(bench, topic, IN_FLIGHT, "noop", window)
    run_flow(bench, [*BARE_LOOP.program(), *arguments.command_line()], deadline_s=deadline_s(window))
