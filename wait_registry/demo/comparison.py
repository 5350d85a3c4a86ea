"""The batch consumer compared with wait-registry: same handler, same N, same latencies."""

from __future__ import annotations

import time
from collections.abc import Sequence

from wait_registry.demo.background import Background, BackgroundError
from wait_registry.demo.calls import read_calls
from wait_registry.demo.platform import Platform
from wait_registry.demo.rates import Measurement, batch_limit_per_s, registry_limit_per_s, steady_rate_per_s
from wait_registry.demo.run import Run
from wait_registry.demo.screen import Bar, Screen

POLL_S = 0.2
STALLED_S = 60.0

REGISTRY_TARGET = 0.95
BATCH_TARGET = 0.85
RATIO_TARGET = 3.2


def compare(screen: Screen, platform: Platform, runs: Sequence[Run]) -> list[Measurement]:
    """Run both at the same time until their records are done; return the measurements.

    Raises BackgroundError when a process ends or nothing is completed for a minute.
    """
    processors = [_start(platform, run) for run in runs]
    with screen.progress([Bar(run.name, run.records) for run in runs]) as bars:
        last_progress_s = time.monotonic()
        while any(bar.completed < bar.total for bar in bars.bars):
            time.sleep(POLL_S)
            before = sum(bar.completed for bar in bars.bars)
            for run, bar, processor in zip(runs, bars.bars, processors, strict=True):
                processor.require_running()
                bar.completed = min(run.completed(), bar.total)
            bars.show()
            if sum(bar.completed for bar in bars.bars) > before:
                last_progress_s = time.monotonic()
            _require_progress(last_progress_s, processors)
    for processor in processors:
        if status := processor.stop():
            raise BackgroundError(f"{processor.name} ended with status {status} after SIGTERM")
    return [measure(run) for run in runs]


def _start(platform: Platform, run: Run) -> Background:
    start = platform.start_baseline if run.strategy == "batch" else platform.start_processor
    return start(f"processor-{run.name}", run.settings)


def measure(run: Run) -> Measurement:
    """Return the rate and the limit of a finished run, both measured by its downstream."""
    processor = run.settings.processor
    stats = run.downstream.get_json("/stats")
    if run.strategy == "batch":
        limit = batch_limit_per_s(processor.max_in_flight, stats["slowest_s"])
    else:
        limit = registry_limit_per_s(processor.max_in_flight, stats["mean_s"])
    rate = steady_rate_per_s(read_calls(run.calls))
    return Measurement(run.strategy, processor.max_in_flight, run.records, rate, limit)


def show_measurements(screen: Screen, measurements: Sequence[Measurement]) -> None:
    """Print rates and limits, and which rates are lower than expected."""
    batch = {m.max_in_flight: m.rate_per_s for m in measurements if m.strategy == "batch"}
    rows = []
    for one in measurements:
        ratio = one.rate_per_s / batch[one.max_in_flight]
        rows.append(
            (
                one.strategy,
                str(one.max_in_flight),
                str(one.records),
                f"{one.rate_per_s:.1f}/s",
                f"{one.limit_per_s:.1f}/s",
                f"{one.share_of_limit:.1%}",
                "" if one.strategy == "batch" else f"{ratio:.2f}x",
            )
        )
    columns = ("strategy", "#N", "#records", "#rate", "#limit", "#of limit", "#against batch")
    screen.table(
        "Completions per second without the first and the last tenth, measured by the downstream", columns, rows
    )
    screen.note("limit: N / slowest call for batch, N / mean call for registry")
    slow = shortfalls(measurements)
    for shortfall in slow:
        screen.note(f"[yellow]slower than expected:[/] {shortfall}")
    if slow:
        screen.note("A busy machine is the usual reason. It affects no record and not the exit code of the demo.")


def shortfalls(measurements: Sequence[Measurement]) -> list[str]:
    """Return which rates are lower than expected on an idle machine."""
    batch = {m.max_in_flight: m.rate_per_s for m in measurements if m.strategy == "batch"}
    found = []
    for one in measurements:
        target = BATCH_TARGET if one.strategy == "batch" else REGISTRY_TARGET
        if one.share_of_limit < target:
            found.append(
                f"{one.strategy} at N={one.max_in_flight}: {one.share_of_limit:.1%} of its limit, "
                f"expected at least {target:.0%}"
            )
        if one.strategy != "batch" and one.rate_per_s < RATIO_TARGET * batch[one.max_in_flight]:
            ratio = one.rate_per_s / batch[one.max_in_flight]
            found.append(
                f"{one.strategy} at N={one.max_in_flight}: {ratio:.2f} times the rate of batch, "
                f"expected at least {RATIO_TARGET}"
            )
    return found


def _require_progress(last_progress_s: float, processors: Sequence[Background]) -> None:
    if time.monotonic() < last_progress_s + STALLED_S:
        return
    logs = ", ".join(str(processor.log) for processor in processors)
    raise BackgroundError(f"no call was completed for {STALLED_S:.0f} s; see {logs}")
