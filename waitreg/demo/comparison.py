"""The batch consumer compared with wait-registry in two modes: same handler, same N, same latencies, same load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean, median
from threading import Event

from waitreg.demo.plan import BATCH, published_per_s
from waitreg.demo.run import DEADLINE_S, Run, within_deadline
from waitreg.downstream.calls import Call, read_calls
from waitreg.load.manifest import read_manifest
from waitreg.local.server import ServerError
from waitreg.reconcile.evidence import read_wait_log
from waitreg.reconcile.screen import Screen


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one strategy.

    ``limit_per_s`` is the rate that the strategy allows at most, ``median_s`` the time from the publication of a record
    to the end of its call, ``registered`` the share of the records that reached the wait topic.
    """

    strategy: str
    max_in_flight: int
    records: int
    rate_per_s: float
    limit_per_s: float
    median_s: float
    registered: float


def compare(screen: Screen, runs: Sequence[Run]) -> list[Measurement]:
    """Run all at the same time until their records are done; return the measurements.

    Records are published when the processors are ready. What is in a topic before belongs to the warm-up, in which
    `deferred` registers every record.

    Raises:
        ServerError: a process ended, or the records were not done in time.
    """
    processors = [run.start_processor(f"processor-{run.name}") for run in runs]
    for processor in processors:
        if processor.port:  # the baseline has none
            processor.wait_ready()
    with screen.progress({run.name: run.records for run in runs}) as show, _published(runs) as loads:

        def all_done() -> bool:
            for processor in processors:
                processor.require_running()
            for load in loads:
                if load.done():
                    load.result()
            completed = {run.name: min(run.completed(), run.records) for run in runs}
            show(completed)
            return completed == {run.name: run.records for run in runs}

        if not within_deadline(all_done):
            logs = ", ".join(str(processor.log) for processor in processors)
            raise ServerError(f"some records were not done after {DEADLINE_S:.0f} s; see {logs}")
    for processor in processors:
        processor.stop()
        if processor.stopped_with:
            raise ServerError(f"{processor.name} ended with status {processor.stopped_with} after SIGTERM")
    return [_measure(run) for run in runs]


@contextmanager
def _published(runs: Sequence[Run]) -> Iterator[Sequence[Future[None]]]:
    """Publish the records of all runs meanwhile, each at the same rate."""
    over = Event()
    with ThreadPoolExecutor(len(runs)) as pool:
        try:
            rates = [published_per_s(run.settings.processor.most_in_flight) for run in runs]
            yield [pool.submit(run.publish, rate, over.is_set) for run, rate in zip(runs, rates, strict=True)]
        finally:
            over.set()


def _measure(run: Run) -> Measurement:
    """Return the figures of a finished run, measured by its downstream and by the contents of the topics."""
    processor, calls = run.settings.processor, list(read_calls(run.calls))
    latencies_s = [call.latency_s for call in calls if call.succeeded]
    published_ms = {one.coordinates: one.timestamp_ms for one in read_manifest(run.manifest)}
    registered = {entry.original for entry in read_wait_log(run.settings, processor.group)} & published_ms.keys()
    return Measurement(
        run.strategy,
        processor.most_in_flight,
        run.records,
        steady_rate_per_s(calls),
        limit_per_s(run.strategy, processor.most_in_flight, max(latencies_s), mean(latencies_s)),
        median(one.finished_ms - published_ms[one.coordinates] for one in calls if one.succeeded and one.coordinates)
        / 1000,
        len(registered) / run.records,
    )


def limit_per_s(strategy: str, max_in_flight: int, slowest_call_s: float, mean_call_s: float) -> float:
    """Return the highest possible rate: a batch ends with its slowest call, N worker slots follow Little's law."""
    return max_in_flight / (slowest_call_s if strategy == BATCH else mean_call_s)


def steady_rate_per_s(calls: Iterable[Call]) -> float:
    """Return completions per second between the first and the last tenth of completions.

    The first and the last tenth are skipped: startup, and slow calls at the end while other slots are idle.
    """
    finished = sorted(call.finished_s for call in calls if call.succeeded)
    tenth = len(finished) // 10
    first, last = tenth, len(finished) - tenth
    return (last - first) / (finished[last] - finished[first])


def show_measurements(screen: Screen, measurements: Sequence[Measurement]) -> None:
    """Print rates, limits, latencies and the shares of registered records."""
    batch = {one.max_in_flight: one.rate_per_s for one in measurements if one.strategy == BATCH}
    rows = [
        (
            one.strategy,
            str(one.max_in_flight),
            str(one.records),
            f"{published_per_s(one.max_in_flight):.1f}/s",
            f"{one.rate_per_s:.1f}/s",
            f"{one.limit_per_s:.1f}/s",
            "" if one.strategy == BATCH else f"{one.rate_per_s / batch[one.max_in_flight]:.2f}x",
            f"{one.median_s:.2f} s",
            f"{one.registered:.0%}",
        )
        for one in measurements
    ]
    columns = (
        "strategy",
        "#N",
        "#records",
        "#published",
        "#rate",
        "#limit",
        "#against batch",
        "#median",
        "#registered",
    )
    screen.table(
        "Completions per second without the first and the last tenth, measured by the downstream", columns, rows
    )
    screen.note("limit: N / slowest call for batch, N / mean call for the others")
    screen.note("median: from publication to the end of the call; registered: the share that reached the wait topic")
