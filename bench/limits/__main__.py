"""Limits of calls against a service whose capacity changes: `python -m bench.limits`.

Each phase is compared with the best fixed limit, which is the capacity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import mean
from typing import Final, NamedTuple

from bench.limits.called_service import Phase, Service, Trial
from bench.limits.published_limits import Gradient2, Vegas
from processor.flow.adaptive_limit import AdaptiveLimit
from processor.flow.concurrency import ConcurrencyLimit, FixedLimit

LEAST, MOST = 5, 500
SEEDS: Final = range(4)
WINDOW_S: Final = 2.0
GOOD_SHARE: Final = 0.8

PHASES: Final = [
    Phase(60, 20),
    Phase(60, 200),
    Phase(60, 5),
    Phase(60, 200),
    Phase(30, 0),
    Phase(60, 200),
    Phase(60, 20, 3),
]
SERVICES: Final = {
    "queues": Service(),
    "refuses": Service(refuses=True),
    "slow, queues": Service(median_s=0.5),
    "heavier tail": Service(sigma=1.5),
    "1 % hang": Service(hangs=0.01),
}
LIMITS: Final[dict[str, Callable[[], ConcurrencyLimit]]] = {
    "auto": partial(AdaptiveLimit, LEAST, MOST),
    "Vegas": partial(Vegas, LEAST, MOST),
    "Gradient2": partial(Gradient2, LEAST, MOST),
    "fixed 50": partial(FixedLimit, 50),
}


class Numbers(NamedTuple):
    """What a phase has come to.

    Args:
        share: of the best fixed limit's successes.
        later_share: the same, in the second half of the phase.
        overload: mean calls in flight beyond the capacity, in the second half, per capacity.
        slower: 95th percentile of the calls in the second half, per that of an idle service.
        recovered_s: until the first 2 s with four fifths of the best rate, and at most twice the capacity in flight.
        limit: mean limit in the second half.
    """

    share: float
    later_share: float
    overload: float
    slower: float
    recovered_s: float
    limit: float


def measure(trial: Trial) -> list[Numbers]:
    """Return the numbers of each phase of a trial that has run."""
    numbers: list[Numbers] = []
    began_s = 0.0
    for phase in trial.phases:
        numbers.append(_measure_phase(trial, phase, began_s))
        began_s += phase.seconds
    return numbers


def _measure_phase(trial: Trial, phase: Phase, began_s: float) -> Numbers:
    end_s, half_s = began_s + phase.seconds, began_s + phase.seconds / 2
    done = [call for call in trial.calls if began_s <= call.at_s < end_s and not call.failed]
    later = sorted(call.seconds for call in done if call.at_s >= half_s)
    samples = [sample for sample in trial.samples if half_s <= sample.at_s < end_s]
    best = phase.capacity / (trial.service.mean_s * phase.slower)
    overload = mean(max(0, sample.running - phase.capacity) for sample in samples)
    idle_s = trial.service.idle_p95_s * phase.slower
    return Numbers(
        share=len(done) / phase.seconds / best if best else 0,
        later_share=2 * len(later) / phase.seconds / best if best else 0,
        overload=overload / max(1, phase.capacity),
        slower=later[int(0.95 * len(later))] / idle_s if later else 0,
        recovered_s=_recovered_s(trial, phase, began_s, best) if best else 0,
        limit=mean(sample.limit for sample in samples),
    )


def _recovered_s(trial: Trial, phase: Phase, began_s: float, best: float) -> float:
    done = Counter((call.at_s - began_s) // WINDOW_S for call in trial.calls if not call.failed)
    running: dict[float, list[int]] = {}
    for sample in trial.samples:
        running.setdefault((sample.at_s - began_s) // WINDOW_S, []).append(sample.running)
    for window in range(int(phase.seconds / WINDOW_S)):
        if done[window] / WINDOW_S >= GOOD_SHARE * best and mean(running[window]) <= 2 * phase.capacity:
            return window * WINDOW_S
    return phase.seconds


def _trial(limit: str, service: str, seed: int) -> list[Numbers]:
    return measure(Trial(LIMITS[limit](), PHASES, SERVICES[service], seed).run())


def main() -> None:
    """Print the table: means over the seeds."""
    print("| service | capacity | limit | share | later | overload | p95 | recovered | mean limit |")
    print("|---|---|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(2) as pool:
        for service in SERVICES:
            found = {limit: list(pool.map(partial(_trial, limit, service), SEEDS)) for limit in LIMITS}
            for number, phase in enumerate(PHASES):
                for limit, runs in found.items():
                    phases = [run[number] for run in runs]
                    one = Numbers(*(mean(values) for values in zip(*phases, strict=True)))
                    slower = f", {phase.slower:g} x slower" if phase.slower != 1 else ""
                    print(
                        f"| {service} | {phase.capacity or 'outage'}{slower} | {limit} | {one.share:.0%} | "
                        f"{one.later_share:.0%} | {one.overload:.2f} | {one.slower:.1f} | {one.recovered_s:.0f} s | "
                        f"{one.limit:.0f} |"
                    )


if __name__ == "__main__":
    main()
