"""The batch consumer compared with wait-registry: same handler, same N, same latencies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from wait_registry.demo.calls import Call, read_calls
from wait_registry.demo.run import DEADLINE_S, Run, within_deadline
from wait_registry.demo.screen import Screen
from wait_registry.local.server import ServerError


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one strategy: its rate and the limit that the strategy sets."""

    strategy: str
    max_in_flight: int
    records: int
    rate_per_s: float
    limit_per_s: float


def compare(screen: Screen, runs: Sequence[Run]) -> list[Measurement]:
    """Run both at the same time until their records are done; return the measurements.

    Raises:
        ServerError: a process ended, or the records were not done in time.
    """
    processors = [run.start_processor(f"processor-{run.name}") for run in runs]
    with screen.progress({run.name: run.records for run in runs}) as show:

        def all_done() -> bool:
            for processor in processors:
                processor.require_running()
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


def _measure(run: Run) -> Measurement:
    """Return the rate and the limit of a finished run, both measured by its downstream."""
    max_in_flight, calls = run.settings.processor.max_in_flight, list(read_calls(run.calls))
    latencies_s = [call.latency_s for call in calls if call.succeeded]
    limit = limit_per_s(run.strategy, max_in_flight, max(latencies_s), mean(latencies_s))
    return Measurement(run.strategy, max_in_flight, run.records, steady_rate_per_s(calls), limit)


def limit_per_s(strategy: str, max_in_flight: int, slowest_call_s: float, mean_call_s: float) -> float:
    """Return the highest possible rate: a batch ends with its slowest call, N worker slots follow Little's law."""
    return max_in_flight / (slowest_call_s if strategy == "batch" else mean_call_s)


def steady_rate_per_s(calls: Iterable[Call]) -> float:
    """Return completions per second between the first and the last tenth of completions.

    The first and the last tenth are skipped: startup, and slow calls at the end while other slots are idle.
    """
    finished = sorted(call.finished_s for call in calls if call.succeeded)
    tenth = len(finished) // 10
    first, last = tenth, len(finished) - tenth
    return (last - first) / (finished[last] - finished[first])


def show_measurements(screen: Screen, measurements: Sequence[Measurement]) -> None:
    """Print rates and limits."""
    batch = {one.max_in_flight: one.rate_per_s for one in measurements if one.strategy == "batch"}
    rows = [
        (
            one.strategy,
            str(one.max_in_flight),
            str(one.records),
            f"{one.rate_per_s:.1f}/s",
            f"{one.limit_per_s:.1f}/s",
            f"{one.rate_per_s / one.limit_per_s:.1%}",
            "" if one.strategy == "batch" else f"{one.rate_per_s / batch[one.max_in_flight]:.2f}x",
        )
        for one in measurements
    ]
    columns = ("strategy", "#N", "#records", "#rate", "#limit", "#of limit", "#against batch")
    screen.table(
        "Completions per second without the first and the last tenth, measured by the downstream", columns, rows
    )
    screen.note("limit: N / slowest call for batch, N / mean call for registry")
