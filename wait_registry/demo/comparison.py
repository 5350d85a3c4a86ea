"""The batch consumer compared with wait-registry: same handler, same N, same latencies."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wait_registry.demo.background import Background, BackgroundError
from wait_registry.demo.calls import Call, read_calls
from wait_registry.demo.run import Run
from wait_registry.demo.screen import Screen

POLL_S = 0.2
STALLED_S = 60.0
LEAST_COMPLETIONS = 20


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one strategy: its rate and the limit that the strategy sets."""

    strategy: str
    max_in_flight: int
    records: int
    rate_per_s: float
    limit_per_s: float

    @property
    def share_of_limit(self) -> float:
        """Return the rate as a share of its limit."""
        return self.rate_per_s / self.limit_per_s


def compare(screen: Screen, runs: Sequence[Run]) -> list[Measurement]:
    """Run both at the same time until their records are done; return the measurements.

    Raises:
        BackgroundError: a process ended, or no call was completed for a minute.
    """
    processors = [run.start_processor(f"processor-{run.name}") for run in runs]
    with screen.progress({run.name: run.records for run in runs}) as bars:
        completed = [0] * len(runs)
        last_progress_s = time.monotonic()
        while any(count < run.records for count, run in zip(completed, runs, strict=True)):
            time.sleep(POLL_S)
            for processor in processors:
                processor.require_running()
            before, completed = completed, [min(run.completed(), run.records) for run in runs]
            bars.show({run.name: count for run, count in zip(runs, completed, strict=True)})
            if completed != before:
                last_progress_s = time.monotonic()
            _require_progress(last_progress_s, processors)
    for processor in processors:
        if status := processor.stop():
            raise BackgroundError(f"{processor.name} ended with status {status} after SIGTERM")
    return [_measure(run) for run in runs]


def _require_progress(last_progress_s: float, processors: Sequence[Background]) -> None:
    if time.monotonic() >= last_progress_s + STALLED_S:
        logs = ", ".join(str(processor.log) for processor in processors)
        raise BackgroundError(f"no call was completed for {STALLED_S:.0f} s; see {logs}")


def _measure(run: Run) -> Measurement:
    """Return the rate and the limit of a finished run, both measured by its downstream."""
    max_in_flight = run.settings.processor.max_in_flight
    stats = run.downstream.get_json("/stats")
    limit = limit_per_s(run.strategy, max_in_flight, stats["slowest_s"], stats["mean_s"])
    return Measurement(run.strategy, max_in_flight, run.records, steady_rate_per_s(read_calls(run.calls)), limit)


def limit_per_s(strategy: str, max_in_flight: int, slowest_call_s: float, mean_call_s: float) -> float:
    """Return the highest possible rate: a batch ends with its slowest call, N worker slots follow Little's law."""
    return max_in_flight / (slowest_call_s if strategy == "batch" else mean_call_s)


def steady_rate_per_s(calls: Iterable[Call]) -> float:
    """Return completions per second between the first and the last tenth of completions; raise ValueError under 20.

    The first and the last tenth are skipped: startup, and slow calls at the end while other slots are idle.
    """
    finished = sorted(call.finished_s for call in calls if call.succeeded)
    if len(finished) < LEAST_COMPLETIONS:
        raise ValueError(f"{len(finished)} completions are too few to measure a rate; {LEAST_COMPLETIONS} are needed")
    tenth = len(finished) // 10
    first, last = tenth, len(finished) - tenth
    return (last - first) / (finished[last] - finished[first])


def show_measurements(screen: Screen, measurements: Sequence[Measurement]) -> None:
    """Print rates and limits."""
    ratios = _ratios(measurements)
    rows = [
        (
            one.strategy,
            str(one.max_in_flight),
            str(one.records),
            f"{one.rate_per_s:.1f}/s",
            f"{one.limit_per_s:.1f}/s",
            f"{one.share_of_limit:.1%}",
            f"{ratios[one]:.2f}x" if one in ratios else "",
        )
        for one in measurements
    ]
    columns = ("strategy", "#N", "#records", "#rate", "#limit", "#of limit", "#against batch")
    screen.table(
        "Completions per second without the first and the last tenth, measured by the downstream", columns, rows
    )
    screen.note("limit: N / slowest call for batch, N / mean call for registry")


def _ratios(measurements: Sequence[Measurement]) -> dict[Measurement, float]:
    """Return how many times the rate of batch each other strategy reached at the same N."""
    batch = {one.max_in_flight: one.rate_per_s for one in measurements if one.strategy == "batch"}
    return {one: one.rate_per_s / batch[one.max_in_flight] for one in measurements if one.strategy != "batch"}
