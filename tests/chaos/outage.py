"""The long outage: Postgres, the sink, or both down while a million records flow at a fixed offered load."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.chaos.checker.bounds import MIB
from tests.chaos.exactness import WaitLog, inexact, read_wait_log
from tests.chaos.load import Flow
from tests.chaos.report import Played
from tests.chaos.resources import Resources, most_held, processes_of, trends, unread
from tests.chaos.service import Service, kill_all, listens
from tests.chaos.settling import Patience, settle
from tests.chaos.stage import Place, Stage
from tests.support.committed_offsets import committed
from tests.support.waiting import wait_until

WAYS: tuple[tuple[str, ...], ...] = (("postgres",), ("sink",), ("postgres", "sink"))
WARM_UP_S = 15.0
CAUGHT_UP_S = 2.0
BEFORE_S = 30.0
READY_S = 180.0
STILL_S, SETTLE_S = 300.0, 900.0
POLL_S = 0.2
RECORDS, RATE_PER_S = 1_000_000, 4000.0
# The time of the outage is divided into this number of stretches, each with a least memory.
STRETCHES = 10
INPUT_PARTITIONS = 6
PROCESSORS = ("processor-1", "processor-2")
NAMES = (*PROCESSORS, "sink-1", "sweeper-1")
LEAST_SHARE = 0.95
# A sink that catches up for long holds more than in a random run: at most what its container has in
# docker-compose.yml, where it would be killed for another byte.
CATCHING_UP_BYTES = 2048 * MIB
SETTINGS = {
    "processor.handler": "tests.chaos.fast_handler:done",
    "processor.max_in_flight": 100,
    "processor.handler_timeout_s": 3,
    "processor.max_attempts": 1,
    # Shorter than the outage: afterwards the tables are full of rows that are due, and were resolved long ago.
    "processor.ttl_s": 25,
    "processor.margin_s": 5,
    "processor.linger_ms": 5,
    "wait.partitions": 4,
    "wait.skew_allowance_s": 1,
    "sweeper.interval_s": 10,
    "sink.restart_backoff_max_s": 5,
    "kafka.librdkafka": {"session.timeout.ms": 6000},
}
Moment = tuple[float, float]
"""A moment of the clock (epoch) and of the monotonic clock, s."""


def play_outage(stage: Stage, down: Sequence[str], records: int, rate_per_s: float, directory: Path) -> Played:
    """Play one outage and judge it.

    Args:
        stage: where.
        down: "postgres", "sink" or both.
        records: how many flow during the outage.
        rate_per_s: offered load, records per second.
        directory: for logs; made here.
    """
    with stage.place(directory, SETTINGS, INPUT_PARTITIONS) as place, ExitStack() as resources:
        services = {name: stage.service(place, name) for name in NAMES}
        resources.callback(kill_all, list(services.values()))
        for service in services.values():
            service.start()
        wait_until(lambda: all(one.ready() for one in services.values()), READY_S, "readiness of all services")
        watched = resources.enter_context(Resources(list(services.values())))
        flow = resources.enter_context(Flow(place, rate_per_s))
        _catch_up(place, flow, rate_per_s)
        time.sleep(BEFORE_S)
        moments = [_take_down(stage, services, down)]
        goal = flow.published + records
        while flow.published < goal:
            flow.require_running()
            time.sleep(POLL_S)
        moments.append(_bring_back(stage, services, down))
        flow.end()
        unsettled = settle(place, Patience(STILL_S, SETTLE_S))
        moments.append(_now())
        watched.write(directory / "readings.csv")
        statuses = {name: service.stop() for name, service in services.items()}
        # processor-2 was killed, and not started again.
        unfine = {name: status for name, status in statuses.items() if status != (None if name == PROCESSORS[1] else 0)}
        wrong = [f"{name} ended with status {status}" for name, status in unfine.items()]
        wrong += [f"not settled: {unsettled}"] if unsettled else []
        return _judged(place, watched, moments, flow.published, wrong)


def _judged(place: Place, watched: Resources, moments: Sequence[Moment], published: int, wrong: list[str]) -> Played:
    """Judge an outage by the moments of its begin, its end, and when it settled."""
    (began_s, began), (ended_s, ended), (_, exact) = moments
    log = read_wait_log(place)
    # A little less than a part of the time: the last one is to be whole.
    found = trends(watched.between(began, ended), began, (ended - began) / (STRETCHES + 0.5))
    memory = [one for one in found if one.measure == "rss_bytes" and one.name in processes_of(PROCESSORS)]
    peak = most_held(watched.between(ended, exact), "sink-1")
    before, during = _per_second(log, began_s - BEFORE_S, began_s), _per_second(log, began_s, ended_s)
    share = during / before if before else 0.0
    wrong += inexact(place, log, published)
    wrong += unread(memory, processes_of(PROCESSORS), STRETCHES)
    wrong += [f"memory grows: {trend}" for trend in memory if not trend.flat]
    wrong += [] if 0 < peak <= CATCHING_UP_BYTES else [f"the sink held {peak} bytes while it caught up"]
    wrong += [] if share >= LEAST_SHARE else [f"a share of {share:.3f} was done, expected {LEAST_SHARE}"]
    caught_up = f"sink at most {peak / 1e6:.0f} MB while it caught up; exact after {exact - ended:.0f} s"
    lines = [
        f"done {before:.0f}/s before and {during:.0f}/s during {ended - began:.0f} s (share {share:.3f})",
        *map(str, memory),
        f"{caught_up}; {log.outcomes['expired']} expired",
    ]
    return Played(published, lines, wrong)


def _now() -> Moment:
    return time.time(), time.monotonic()


def _catch_up(place: Place, flow: Flow, rate_per_s: float) -> None:
    """Wait until the processors have done what came while they joined: it would count for the time before."""
    group, bootstrap = place.settings.processor.group, place.settings.kafka.bootstrap_servers

    def behind() -> float:
        flow.require_running()
        return flow.published - sum(max(one, 0) for one in committed(bootstrap, group, place.input, INPUT_PARTITIONS))

    time.sleep(WARM_UP_S)
    wait_until(lambda: behind() < CAUGHT_UP_S * rate_per_s, READY_S, "the processors keep up with the load", POLL_S)


def _take_down(stage: Stage, services: Mapping[str, Service], down: Sequence[str]) -> Moment:
    if "postgres" in down:
        stage.stack.postgres.stop()
        assert not listens(stage.stack.postgres.port), "Postgres is down"
    if "sink" in down:
        services["sink-1"].kill()
    return _now()


def _bring_back(stage: Stage, services: Mapping[str, Service], down: Sequence[str]) -> Moment:
    ended = _now()
    # What it has in flight has to expire, and is to be found among all that look expired in the tables of before.
    services[PROCESSORS[1]].kill()
    if "postgres" in down:
        stage.stack.postgres.start()
    if "sink" in down:
        services["sink-1"].start()
    return ended


def _per_second(log: WaitLog, began_s: float, ended_s: float) -> float:
    """Return records finished per second, by the broker's time of their tombstones; whole seconds only."""
    seconds = range(int(began_s) + 1, int(ended_s))
    return sum(log.done_by_second[second] for second in seconds) / len(seconds) if seconds else 0.0
