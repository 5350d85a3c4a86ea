"""What tracing costs a record: run `python bench/tracing.py`; prints us of CPU per record, the best of several rounds.

The way from the worker's queue to the tombstone, with a handler that answers at once and a producer that sends nothing:
what is left is the dispatch itself, so that every test and every span shows. Rounds of all kinds take turns, and CPU
time is counted, the exporting thread's included, so that a busy machine changes little.
About a minute with the usual number of rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from processor.assigned_partition import AssignedPartition
from processor.attempts import Attempts
from processor.committable import RegistrationBatch
from processor.deadline import Watchdog
from processor.dispatch import Dispatcher
from processor.ending import Fault
from processor.entry import Entry, Lifetime
from processor.expiry import time_limits
from processor.handlers.python import AsynchronousHandler
from processor.outbox import Outbox
from processor.prefetch import Outstanding
from processor.retry_decision import RetryDecision
from processor.settlement import Settlement
from processor.stats import Stats
from wait_registry.clock import SystemClock
from wait_registry.handler import Record
from wait_registry.records.headers import Headers
from wait_registry.records.original import Original
from wait_registry.settings.processor import ProcessorSettings

RECORDS: Final = 20_000
BATCH: Final = 500
IN_FLIGHT: Final = 50
CLOCK: Final = SystemClock()
LIFETIME: Final = Lifetime(1_900_000_000_000, datetime(2030, 3, 17, tzinfo=UTC), 1e12, 1e12, 0.0)
OWNER: Final = AssignedPartition("orders", 3)
PARENT: Final = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
SAMPLED: Final[Headers] = (("tenant", b"acme"), ("traceparent", PARENT + b"01"))
UNSAMPLED: Final[Headers] = (("tenant", b"acme"), ("traceparent", PARENT + b"00"))


class SendsNothing:
    """Takes what a producer takes."""

    def produce(self, *_: object, **__: object) -> None:
        """Do nothing."""


async def answer(record: Record) -> None:
    """Handle a record at once."""


def batch(headers: Headers, first: int) -> RegistrationBatch:
    """Return registered records."""
    entries = []
    for offset in range(first, first + BATCH):
        original = Original("orders", 3, offset, 0, "create", b"key", b"value", headers)
        entry = Entry(original, None, 1, f"id-{offset}", OWNER, offset, 8, LIFETIME)
        entry.wait_partition, entry.wait_offset = 1, offset
        entries.append(entry)
    return RegistrationBatch(entries, {}, 1_795_227_600_000, lambda *_: None, lambda *_: None)


async def dispatched(headers: Headers, traces: Any) -> float:
    """Work records off and return the CPU time of one, s."""
    settings, stats, fault = ProcessorSettings(max_in_flight=IN_FLIGHT), Stats(), Fault()
    outstanding = Outstanding()
    outbox: Any = Outbox(SendsNothing(), fault)  # type: ignore[arg-type]
    decision = RetryDecision(settings, time_limits(settings), lambda: 0.0)
    more: dict[str, Any] = {} if traces is None else {"traces": traces}
    settlement = Settlement(outbox, None, "wait", outstanding, stats, **more)  # type: ignore[arg-type]
    attempts = Attempts(AsynchronousHandler(answer), settings.handler_timeout_s, decision, CLOCK, stats)
    watchdog = Watchdog(CLOCK, settings.handler_timeout_s)
    dispatcher = Dispatcher(
        IN_FLIGHT, "shop", attempts, watchdog, CLOCK, fault, settlement.settle, lambda entry: None, **more
    )
    batches = [batch(headers, first) for first in range(0, RECORDS, BATCH)]
    before_s = time.process_time()
    for one in batches:
        dispatcher.add(one.entries)
        while dispatcher.waiting or dispatcher.running:  # noqa: ASYNC110 - the dispatcher tells nobody
            await asyncio.sleep(0)
    elapsed_s = time.process_time() - before_s
    assert outbox.unacknowledged == RECORDS, fault.error
    await dispatcher.stop()
    return elapsed_s / RECORDS


def off() -> tuple[Any, Callable[[], str]]:
    """Return no tracing."""
    return None, lambda: ""


def on() -> tuple[Any, Callable[[], str]]:
    """Return tracing whose spans are encoded and sent nowhere."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    from processor.traces import Traces
    from wait_registry.telemetry.tracing_export import SpanSender
    from wait_registry.telemetry.tracing_spans import SpanTracer

    class Encodes(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            encode_spans(spans).SerializePartialToString()
            return SpanExportResult.SUCCESS

    sent = SpanSender(Encodes())
    return (
        Traces(SpanTracer(sent), "shop", "host-1"),
        lambda: (
            f"{sent.exported} of {sent.offered} spans sent, the queue had no room for the others" * bool(sent.exported)
        ),
    )


KINDS: Final[dict[str, tuple[Callable[[], tuple[Any, Callable[[], str]]], Headers]]] = {
    "off": (off, SAMPLED),
    "on, the parent isn't sampled": (on, UNSAMPLED),
    "on": (on, SAMPLED),
}


def main() -> None:
    """Print a line for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="how often each kind is measured (7)")
    parser.add_argument("--only", choices=KINDS, action="append", help="this kind; may be given again")
    arguments = parser.parse_args()
    kinds = {kind: KINDS[kind] for kind in arguments.only or KINDS}
    made = {kind: build() for kind, (build, _) in kinds.items()}
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(1, arguments.rounds + 1):
        print(f"round {number} of {arguments.rounds}", file=sys.stderr)
        for kind, (_, headers) in kinds.items():
            taken[kind].append(asyncio.run(dispatched(headers, made[kind][0])))
    for kind, seconds in taken.items():
        print(f"{kind:32} {min(seconds) * 1e6:7.2f} us  {made[kind][1]()}".rstrip())


if __name__ == "__main__":
    main()
