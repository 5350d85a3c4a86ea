"""The long outage, scaled: Postgres, the sink, or both away while a million records flow at a fixed offered load."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.exactness import WaitLog, inexact, read_wait_log
from tests.chaos.load import Flow
from tests.chaos.resources import (
    CATCHING_UP_BYTES,
    Resources,
    Trend,
    flat,
    most_held,
    processes_of,
    told,
    trends,
    unread,
)
from tests.chaos.service import Service, listens
from tests.chaos.settling import Patience, settle
from tests.chaos.stage import Place, Stage
from tests.support.committed_offsets import committed
from tests.support.waiting import wait_until

WAYS: tuple[tuple[str, ...], ...] = (("postgres",), ("sink",), ("postgres", "sink"))
WARM_UP_S = 15.0
CAUGHT_UP_S = 2.0
BEFORE_S = 30.0
READY_S = 180.0
STILL_S = 300.0
SETTLE_S = 900.0
LOOK_S = 0.2
RECORDS, RATE_PER_S = 1_000_000, 4000.0
# Of the time that somebody is away, so many parts are looked at for the least memory in each.
STRETCHES = 10
INPUT_PARTITIONS = 6
PROCESSORS = ("processor-1", "processor-2")
NAMES = (*PROCESSORS, "sink-1", "sweeper-1")
LEAST_SHARE = 0.95
SETTINGS = {
    "processor.handler": "tests.chaos.fast_handler:done",
    "processor.max_in_flight": 100,
    "processor.handler_timeout_s": 3,
    "processor.max_attempts": 1,
    # Shorter than the outage: on return the view is full of rows that are due, and were resolved long ago.
    "processor.ttl_s": 25,
    "processor.margin_s": 5,
    "processor.linger_ms": 5,
    "wait.partitions": 4,
    "wait.skew_allowance_s": 1,
    "sweeper.interval_s": 10,
    "sink.restart_backoff_max_s": 5,
    "kafka.librdkafka": {"session.timeout.ms": 6000},
}


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment on two clocks."""

    epoch_s: float
    monotonic_s: float

    @classmethod
    def now(cls) -> Moment:
        """Look at both clocks."""
        return cls(time.time(), time.monotonic())


@dataclass(frozen=True, slots=True)
class Outage:
    """One outage: completions a second before and during it, what grew meanwhile, and what is wrong."""

    away: tuple[str, ...]
    records: int
    lasted_s: float
    before_per_s: float
    during_per_s: float
    memory: Sequence[Trend]
    sink_peak_bytes: int
    expired: int
    exact_after_s: float
    wrong: Sequence[str]

    @property
    def share(self) -> float:
        """Completed during the outage, as a share of before."""
        return self.during_per_s / self.before_per_s if self.before_per_s else 0.0

    @property
    def kept(self) -> bool:
        """Whether all was as promised."""
        return self.share >= LEAST_SHARE and all(map(flat, self.memory)) and not self.wrong

    def lines(self) -> Iterator[str]:
        """Tell it."""
        yield f"{' and '.join(self.away)} away for {self.lasted_s:.0f} s, {self.records} records in all:"
        rates = f"{self.before_per_s:.0f}/s before, {self.during_per_s:.0f}/s meanwhile"
        yield f"  done: {rates}, a share of {self.share:.3f} (at least {LEAST_SHARE})"
        yield from (told(trend) for trend in self.memory)
        yield f"  the sink held {self.sink_peak_bytes / 1e6:.0f} MB at most while it caught up"
        yield f"  on return: exact after {self.exact_after_s:.0f} s, {self.expired} expired records exported, none else"
        yield from (f"  WRONG: {problem}" for problem in self.wrong)

    def figures(self) -> str:
        """Tell what was measured in a line."""
        gained = max((trend.growth for trend in self.memory), default=0.0)
        return (
            f"done {self.before_per_s:.0f}/s before and {self.during_per_s:.0f}/s during {self.lasted_s:.0f} s "
            f"(share {self.share:.3f}); processors {gained / 1e6:+.1f} MB; sink at most "
            f"{self.sink_peak_bytes / 1e6:.0f} MB; exact after {self.exact_after_s:.0f} s; {self.expired} expired; "
            f"wrong: {'; '.join(self.wrong) or 'nothing'}"
        )


@dataclass(frozen=True, slots=True)
class Played:
    """An outage as it went: when it began and ended, when all was settled or given up, and what was left then."""

    away: tuple[str, ...]
    records: int
    began: Moment
    ended: Moment
    exact: Moment
    unsettled: str
    statuses: Mapping[str, int | None]


def play_outage(stage: Stage, away: tuple[str, ...], records: int, rate_per_s: float, directory: Path) -> Outage:
    """Play one outage and judge it.

    Args:
        stage: where.
        away: "postgres", "sink" or both.
        records: how many flow while they are away.
        rate_per_s: offered load, records a second.
        directory: for logs; made here.
    """
    with stage.place(directory, SETTINGS, INPUT_PARTITIONS) as place, ExitStack() as resources:
        services = {name: stage.service(place, name) for name in NAMES}
        resources.callback(_kill_all, list(services.values()))
        _start(list(services.values()))
        watched = resources.enter_context(Resources(list(services.values())))
        flow = resources.enter_context(Flow(place, stage.stack.bootstrap_servers, rate_per_s))
        _catch_up(stage, place, flow, rate_per_s)
        time.sleep(BEFORE_S)
        _take_away(stage, services, away)
        began = Moment.now()
        _wait_published(flow, flow.published + records)
        ended = Moment.now()
        # What it has in hand has to expire, and is to be found among all that look expired in the view of before.
        services["processor-2"].kill()
        _bring_back(stage, services, away)
        flow.end()
        unsettled = settle(stage, place, Patience(STILL_S, SETTLE_S))
        exact = Moment.now()
        watched.write(directory / "readings.csv")
        statuses = {name: service.stop() for name, service in services.items()}
        played = Played(away, flow.published, began, ended, exact, unsettled, statuses)
        return _judged(stage, place, watched, played)


def _judged(stage: Stage, place: Place, watched: Resources, played: Played) -> Outage:
    """Read what is left of an outage, and say what is wrong."""
    began, ended, exact = played.began, played.ended, played.exact
    log = read_wait_log(stage.stack.bootstrap_servers, place.settings.wait.topic)
    memory = _memory(watched, began, ended)
    peak = most_held(watched.between(ended.monotonic_s, exact.monotonic_s), "sink-1")
    wrong = [
        *inexact(stage, place, log, played.records),
        *_wrong_ends(played.statuses),
        *unread(memory, processes_of(PROCESSORS), STRETCHES),
        *([] if 0 < peak <= CATCHING_UP_BYTES else [f"the sink held {peak} bytes while it caught up"]),
        *([f"not settled: {played.unsettled}"] if played.unsettled else []),
    ]
    return Outage(
        away=played.away,
        records=played.records,
        lasted_s=ended.monotonic_s - began.monotonic_s,
        before_per_s=_per_second(log, began.epoch_s - BEFORE_S, began.epoch_s),
        during_per_s=_per_second(log, began.epoch_s, ended.epoch_s),
        memory=memory,
        sink_peak_bytes=peak,
        expired=log.outcomes["expired"],
        exact_after_s=exact.monotonic_s - ended.monotonic_s,
        wrong=wrong,
    )


def _start(services: Sequence[Service]) -> None:
    for service in services:
        service.start()
    wait_until(lambda: all(service.ready() for service in services), READY_S, "readiness of all services")


def _catch_up(stage: Stage, place: Place, flow: Flow, rate_per_s: float) -> None:
    """Wait until what came while the processors took their places is done: it would count for the time before."""

    def behind() -> float:
        flow.require_running()
        offsets = committed(
            stage.stack.bootstrap_servers, place.settings.processor.group, place.input, INPUT_PARTITIONS
        )
        return flow.published - sum(max(offset, 0) for offset in offsets)

    time.sleep(WARM_UP_S)
    wait_until(lambda: behind() < CAUGHT_UP_S * rate_per_s, READY_S, "the processors keep up with the load", LOOK_S)


def _take_away(stage: Stage, services: Mapping[str, Service], away: Sequence[str]) -> None:
    if "postgres" in away:
        stage.stack.postgres.stop()
        assert not listens(stage.stack.postgres.port), "Postgres is away"
    if "sink" in away:
        services["sink-1"].kill()


def _bring_back(stage: Stage, services: Mapping[str, Service], away: Sequence[str]) -> None:
    if "postgres" in away:
        stage.stack.postgres.start()
    if "sink" in away:
        services["sink-1"].start()


def _wait_published(flow: Flow, count: int) -> None:
    while flow.published < count:
        flow.require_running()
        time.sleep(LOOK_S)


def _memory(watched: Resources, began: Moment, ended: Moment) -> list[Trend]:
    """Return the trends of the processors' memory while somebody was away."""
    # A little less than a part of the time: the last one is to be whole.
    stretch_s = (ended.monotonic_s - began.monotonic_s) / (STRETCHES + 0.5)
    found = trends(watched.between(began.monotonic_s, ended.monotonic_s), began.monotonic_s, stretch_s)
    return [trend for trend in found if trend.measure == "rss_bytes" and trend.name in processes_of(PROCESSORS)]


def _per_second(log: WaitLog, began_s: float, ended_s: float) -> float:
    """Return records finished a second, by the broker's time of their tombstones; whole seconds only."""
    seconds = range(int(began_s) + 1, int(ended_s))
    return sum(log.done_by_second[second] for second in seconds) / len(seconds) if seconds else 0.0


def _wrong_ends(statuses: Mapping[str, int | None]) -> Iterator[str]:
    for name, status in statuses.items():
        if status not in (0, None) or (status is None and name != "processor-2"):
            yield f"{name} ended with status {status}"


def _kill_all(services: Sequence[Service]) -> None:
    for service in services:
        if service.running:
            service.kill()
