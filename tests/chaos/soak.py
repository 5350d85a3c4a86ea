"""The soak: a steady load through all services for long, and whether memory, threads or open files grow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.flow import Flow
from tests.chaos.resources import Resources, Trend, flat, told, trends
from tests.chaos.schedule import Mood
from tests.chaos.stage import Stage
from tests.support.waiting import wait_until

NAMES = ("processor-1", "processor-2", "sink-1", "sweeper-1")
RATE_PER_S = 200.0
MOOD = Mood("89%:50ms,10%:200ms-600ms,1%:hang", "1%:503,0.5%:drop")
READY_S = 180.0
LOOK_S = 1.0
# Caches, heaps and compiled code come to their size first.
WARM_UP_SHARE = 0.3
# So that the sweeper has something to do all the time: a processor is killed, and started again, this often.
KILL_EVERY_S = 60.0
SETTINGS = {
    "processor.max_in_flight": 50,
    "processor.handler_timeout_s": 2,
    "processor.max_tries": 1,
    "processor.ttl_s": 15,
    "processor.margin_s": 5,
    "wait.partitions": 4,
    "wait.skew_allowance_s": 1,
    "sweeper.interval_s": 5,
    "kafka.librdkafka": {"session.timeout.ms": 6000},
}


@dataclass(frozen=True, slots=True)
class Soak:
    """What a soak came to."""

    minutes: float
    records: int
    trends: Sequence[Trend]
    ended: Sequence[str]

    @property
    def kept(self) -> bool:
        """Whether everything was flat and nothing ended."""
        return bool(self.trends) and all(map(flat, self.trends)) and not self.ended

    def lines(self) -> Iterator[str]:
        """Tell it."""
        yield f"{self.minutes:g} minutes, {self.records} records; slopes from {WARM_UP_SHARE:.0%} of the time on:"
        yield from (told(trend) for trend in self.trends)
        yield from (f"  WRONG: {name} ended by itself" for name in self.ended)


def play_soak(stage: Stage, minutes: float, directory: Path) -> Soak:
    """Let all services work for so many minutes, and return what became of their memory, threads and open files."""
    with stage.place(directory, SETTINGS, 6) as place, ExitStack() as resources:
        services = {name: stage.service(place, name) for name in NAMES}
        victim = stage.service(place, "processor-3")
        company = [*services.values(), stage.downstream(place, MOOD), victim]
        resources.callback(lambda: [service.kill() for service in company if service.running])
        for service in company:
            service.start()
        wait_until(lambda: all(service.ready() for service in company), READY_S, "readiness of all services")
        watched = resources.enter_context(Resources(list(services.values())))
        flow = resources.enter_context(Flow(place, stage.stack.bootstrap_servers, RATE_PER_S, "orders"))
        began, next_kill = time.monotonic(), time.monotonic() + KILL_EVERY_S
        while time.monotonic() < began + 60 * minutes:
            flow.require_running()
            time.sleep(LOOK_S)
            if time.monotonic() > next_kill:
                next_kill += KILL_EVERY_S
                victim.kill()
                victim.start()
        flow.end()
        ended = [service.name for service in company if not service.running]
        watched.write(directory / "readings.csv")
        readings = watched.between(began + WARM_UP_SHARE * 60 * minutes, time.monotonic())
        return Soak(minutes, flow.published, trends(readings), ended)
