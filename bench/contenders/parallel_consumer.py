"""Confluent's Parallel Consumer as a contender: two small Java programs, on its core module and on its Vert.x module.

The core module is what its documentation introduces: `poll(context -> ...)` with a thread for each call, so that 2,000
calls in flight are 2,000 threads. The Vert.x module is its way to make HTTP calls without a thread for each.

`maxConcurrency` is N; all other options are its defaults: `PERIODIC_CONSUMER_ASYNCHRONOUS` commits every 5 s, which is
its fastest mode and the one it suggests to start with, and `batchSize` is 1. Its buffer grows by itself, from 2 N by N
every 2 s at most: it works for 10 s before it is measured. The consumer has `enable.auto.commit=false`, which it
demands, and `auto.offset.reset=earliest`; kafka-clients 3.7.0 is the version that it is built with.
"""

from __future__ import annotations

from dataclasses import asdict

from bench.contenders.flow_program import FlowArguments
from bench.contenders.java_programs import java_program
from bench.harness.row import Bench


def command(bench: Bench, order: str, arguments: FlowArguments) -> list[str]:
    """Return the program on the core module for an order, `unordered` or `key` (one call at a time per key)."""
    given = {**asdict(arguments), "order": order}
    return java_program(bench, "ParallelConsumerFlow", *(str(part) for item in given.items() for part in item))


def calling_command(bench: Bench, topic: str, group: str, in_flight: int, url: str) -> list[str]:
    """Return the program on the Vert.x module that POSTs each record's value, and never ends."""
    given = {"kafka": bench.kafka, "topic": topic, "group": group, "in_flight": str(in_flight), "url": url}
    return java_program(
        bench, "ParallelConsumerCalls", *(part for item in {**given, "order": "unordered"}.items() for part in item)
    )
