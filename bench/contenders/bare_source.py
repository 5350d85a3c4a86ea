"""Spark's Kafka source alone, beside the sink: what there is to be had in a session like the sink's."""

from __future__ import annotations

import sys
from typing import Final

from bench.contenders.our_service import scratch
from bench.contenders.our_settings import our_settings
from bench.contenders.wait_log import WaitLog
from bench.harness.process import started
from bench.harness.row import Bench
from wait_registry.demo.environment import as_environment

DEADLINE_S: Final = 240.0
# Within which it gives up itself, and says how far it came.
LIMIT_S: Final = 220.0


def measure(bench: Bench, log: WaitLog) -> dict[str, float]:
    """Have a process read a whole log and return its `records_per_s` and `cpu_us_per_record` once warm.

    The stretch is that of `our_sink.read_log`. The process is one of its own, its session made by the same function
    from the same settings as the sink's; batches have up to `sink.max_batch_records`, and one follows the other without
    a pause.
    """
    first, last = log.measured
    numbers = {"records": log.records, "first": first, "last": last, "limit-s": LIMIT_S}
    arguments = [part for name, number in numbers.items() for part in (f"--{name}", str(number))]
    command = [sys.executable, "-m", "bench.contenders.source_reading", *arguments]
    variables = {**as_environment(our_settings(bench, log)), **scratch(bench.directory)}
    with started(command, bench.directory, variables, name="bare-source") as child:
        return child.result(DEADLINE_S)
