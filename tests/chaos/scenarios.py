"""The scenarios of `make chaos SCENARIO=...`: a long outage, a soak and a storm, each a steady load.

The outage: Postgres, the sink, or both are down while a million records flow. The soak: whether memory, threads or open
files grow over a long time. The storm: the downstream is away, so that every call fails and is to be repeated. All
end with log, dead letters and tables that agree exactly. So does a redrive under kills (`tests/chaos/redrive.py`).
"""

from __future__ import annotations

import math
import subprocess
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any, Final

from tests.chaos.checker.bounds import MIB
from tests.chaos.exactness import WaitLog, inexact, read_wait_log
from tests.chaos.load import Flow
from tests.chaos.redrive import play_redrive
from tests.chaos.report import BROKEN, KEPT, ScenarioEntry, now
from tests.chaos.resources import Resources, Trend, most_held, processes_of, trends, unread
from tests.chaos.service import Service, kill_all, listens
from tests.chaos.settling import settle
from tests.chaos.stage import Place, Stage
from tests.support.committed_offsets import committed
from tests.support.waiting import wait_until
from wait_registry.jvm import java_command

NAMES: Final = ("outage", "soak", "storm", "redrive")
PROCESSORS = ("processor-1", "processor-2")
SERVICES = (*PROCESSORS, "sink-1", "sweeper-1")
INPUT_PARTITIONS = 6
READY_S = 180.0
STILL_S, SETTLE_S = 300.0, 900.0
POLL_S = 0.2
_SETTINGS: Mapping[str, Any] = {
    "processor.max_attempts": 1,
    "processor.margin_s": 5,
    "wait.partitions": 4,
    "wait.skew_allowance_s": 1,
    "kafka.librdkafka": {"session.timeout.ms": 6000},
}

RECORDS, RATE_PER_S = 1_000_000, 4000.0
WARM_UP_S, CAUGHT_UP_S, BEFORE_S = 15.0, 2.0, 30.0
LEAST_DONE = 0.95
# The time of the outage is divided into this number of stretches, each with a least memory.
OUTAGE_STRETCHES = 10
# A sink that catches up for long holds more than in a random run: at most what its container has in
# docker-compose.yml, where it would be killed for another byte.
CATCHING_UP_BYTES = 2048 * MIB
OUTAGE_SETTINGS = {
    **_SETTINGS,
    "processor.handler": "tests.chaos.fast_handler:done",
    "processor.max_in_flight": 100,
    "processor.handler_timeout_s": 3,
    # Shorter than the outage: afterwards the tables are full of rows that are due, and were resolved long ago.
    "processor.ttl_s": 25,
    "processor.linger_ms": 5,
    "sweeper.interval_s": 10,
    "sink.restart_backoff_max_s": 5,
}

SOAK_RATE_PER_S = 200.0
LATENCIES, FAILURES = "89%:50ms,10%:200ms-600ms,1%:hang", "1%:503,0.5%:drop"
# The time is divided into this number of stretches, of a minute at least. Each ends with a rest: what is open then is
# not in use, so that it grows by leaks alone. Idle connections to the downstream are kept for 15 s.
SOAK_STRETCHES, LEAST_STRETCH_S, REST_S = 12, 60.0, 30.0
# Caches, heaps and compiled code come to their size first.
WARM_UP_SHARE = 0.3
# So that the sweeper always has something to do: a processor is killed, and started again, this often.
KILL_EVERY_S, FIRST_KILL_S = 60.0, 15.0
SOAK_SETTINGS = {
    **_SETTINGS,
    "processor.max_in_flight": 50,
    "processor.handler_timeout_s": 2,
    "processor.ttl_s": 15,
    "sweeper.interval_s": 5,
}
STORM_RATE_PER_S, STORM_STRETCHES, AFTER_S = 500.0, 5, 20.0
STORM_SETTINGS = {
    **_SETTINGS,
    "processor.retry.delays": ("5s", "15s", "60s"),
    "processor.max_in_flight": 50,
    "processor.handler_timeout_s": 2,
    "processor.ttl_s": 25,
    "sweeper.interval_s": 10,
}


@dataclass(slots=True)
class Played:
    """What a scenario came to: how many records, what was measured, and what is wrong, in words."""

    records: int = 0
    lines: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def judge(self, found: Sequence[Trend], names: Sequence[str], stretches: int) -> None:
        """Add the trends of these processes, and which of them grow, or were read too rarely."""
        self.lines += map(str, found)
        self.wrong += unread(found, processes_of(names), stretches)
        self.wrong += [f"grows: {trend}" for trend in found if not trend.flat]

    def settle(self, place: Place) -> None:
        """Wait until nothing is left to do."""
        unsettled = settle(place, STILL_S, SETTLE_S)
        self.wrong += [f"not settled: {unsettled}"] if unsettled else []


def play_scenario(
    name: str, folder: Path, commit: str, *, records: int, rate_per_s: float, minutes: float
) -> Iterator[ScenarioEntry]:
    """Play a soak, a storm, a redrive of ``records``, or outages with ``records`` during each."""
    if name == "soak":
        yield _played(f"soak of {minutes:g} minutes", commit, play_soak, minutes, folder / "soak")
    if name == "storm":
        yield _played(f"storm of {minutes:g} minutes", commit, play_storm, minutes, folder / "storm")
    if name == "redrive":
        yield _played("redrive", commit, _play_redrive, records, rate_per_s, folder / "redrive")
    for down in (("postgres",), ("sink",), ("postgres", "sink")) if name == "outage" else ():
        given = (down, records, rate_per_s, folder / f"outage-{'-'.join(down)}")
        yield _played(f"outage of {' and '.join(down)}", commit, play_outage, *given)


def _played(name: str, commit: str, play: Callable[..., Played], *given: object) -> ScenarioEntry:
    """Play one on a stage of its own; an error that interrupts it is its result."""
    began = time.monotonic()
    try:
        with Stage() as stage:
            played = play(stage, *given)
    except Exception as error:  # noqa: BLE001 - printed, and listed as the reason
        print(f"{name}:", traceback.format_exc(), sep="\n", flush=True)
        played = Played(wrong=[" ".join(f"interrupted by {type(error).__name__}: {error}".split())])
    lines = [*played.lines, *(f"WRONG: {problem}" for problem in played.wrong)]
    print(f"{name}, {played.records} records:", *lines, sep="\n  ", flush=True)
    seconds, verdict = round(time.monotonic() - began), BROKEN if played.wrong else KEPT
    return ScenarioEntry(name, commit, now(), seconds, played.records, "; ".join(lines), verdict)


@contextmanager
def _watched(
    stage: Stage, place: Place, directory: Path, others: Sequence[Service] = ()
) -> Iterator[tuple[dict[str, Service], Resources]]:
    """Start the services and ``others``, and read the resources of the services."""
    with ExitStack() as resources:
        services = {name: stage.service(place, name) for name in SERVICES}
        company = [*services.values(), *others]
        resources.callback(kill_all, company)
        for service in company:
            service.start()
        wait_until(lambda: all(one.ready() for one in company), READY_S, "readiness of all services")
        with Resources(list(services.values())) as watched:
            yield services, watched
        watched.write(directory / "readings.csv")


def play_outage(stage: Stage, down: Sequence[str], records: int, rate_per_s: float, directory: Path) -> Played:
    """Play one outage of "postgres", "sink" or both and judge it."""
    played = Played()
    with (
        stage.place(directory, OUTAGE_SETTINGS, INPUT_PARTITIONS) as place,
        _watched(stage, place, directory) as (services, watched),
    ):
        with Flow(place, rate_per_s) as flow:
            _catch_up(place, flow, rate_per_s)
            time.sleep(BEFORE_S)
            _take_down(stage, services, down)
            began, goal = time.monotonic(), flow.published + records
            while flow.published < goal:
                flow.require_running()
                time.sleep(POLL_S)
            ended = time.monotonic()
            _bring_back(stage, services, down)
            flow.end()
        played.records = flow.published
        played.settle(place)
        exact = time.monotonic()
        # processor-2 was killed, and not started again.
        statuses = {name: service.stop() for name, service in services.items() if name != PROCESSORS[1]}
        played.wrong += [f"{name} ended with status {status}" for name, status in statuses.items() if status != 0]
        _judge_outage(played, place, watched, began, ended, exact)
    return played


def _judge_outage(played: Played, place: Place, watched: Resources, began: float, ended: float, exact: float) -> None:
    """Judge an outage by its begin, its end, and when all was settled (monotonic clock, s)."""
    log, epoch_s = read_wait_log(place), time.time() - time.monotonic()
    before = _per_second(log, epoch_s + began - BEFORE_S, epoch_s + began)
    during = _per_second(log, epoch_s + began, epoch_s + ended)
    share = during / before if before else 0.0
    lasted = f"during {ended - began:.0f} s (share {share:.3f})"
    played.lines.append(f"done {before:.0f}/s before and {during:.0f}/s {lasted}")
    played.wrong += [] if share >= LEAST_DONE else [f"a share of {share:.3f} was done, expected {LEAST_DONE}"]
    # A little less than a part of the time: the last one is to be whole.
    found = trends(watched.between(began, ended), began, (ended - began) / (OUTAGE_STRETCHES + 0.5))
    memory = [one for one in found if one.measure == "rss_bytes" and one.name in processes_of(PROCESSORS)]
    played.judge(memory, PROCESSORS, OUTAGE_STRETCHES)
    peak = most_held(watched.between(ended, exact), "sink-1")
    played.wrong += [] if 0 < peak <= CATCHING_UP_BYTES else [f"the sink held {peak} bytes while it caught up"]
    caught_up = f"sink at most {peak / 1e6:.0f} MB while it caught up; exact after {exact - ended:.0f} s"
    played.lines.append(f"{caught_up}; {log.outcomes['expired']} expired")
    played.wrong += inexact(place, log, played.records)


def _catch_up(place: Place, flow: Flow, rate_per_s: float) -> None:
    """Wait until the processors have done what came while they joined: it would count for the time before."""
    group, bootstrap = place.settings.processor.group, place.settings.kafka.bootstrap_servers

    def behind() -> float:
        flow.require_running()
        return flow.published - sum(max(one, 0) for one in committed(bootstrap, group, place.input, INPUT_PARTITIONS))

    time.sleep(WARM_UP_S)
    wait_until(lambda: behind() < CAUGHT_UP_S * rate_per_s, READY_S, "the processors keep up with the load", POLL_S)


def _take_down(stage: Stage, services: Mapping[str, Service], down: Sequence[str]) -> None:
    if "postgres" in down:
        stage.stack.postgres.stop()
        assert not listens(stage.stack.postgres.port), "Postgres is down"
    if "sink" in down:
        services["sink-1"].kill()


def _bring_back(stage: Stage, services: Mapping[str, Service], down: Sequence[str]) -> None:
    # What it has in flight has to expire, and is to be found among all that look expired in the tables of before.
    services[PROCESSORS[1]].kill()
    if "postgres" in down:
        stage.stack.postgres.start()
    if "sink" in down:
        services["sink-1"].start()


def _per_second(log: WaitLog, began_s: float, ended_s: float) -> float:
    """Return records finished per second, by the broker's time of their tombstones; whole seconds only."""
    seconds = range(int(began_s) + 1, int(ended_s))
    return sum(log.done_by_second[second] for second in seconds) / len(seconds) if seconds else 0.0


def play_soak(stage: Stage, minutes: float, directory: Path) -> Played:
    """Let all services work for some minutes, and return what became of their memory, threads and open files."""
    played, count = Played(), min(SOAK_STRETCHES, max(int(60 * minutes / LEAST_STRETCH_S), 1))
    stretch_s, warm = 60 * minutes / count, math.ceil(WARM_UP_SHARE * count)
    with stage.place(directory, SOAK_SETTINGS, INPUT_PARTITIONS) as place:
        others = [stage.downstream(place, LATENCIES, FAILURES), victim := stage.service(place, "processor-3")]
        with _watched(stage, place, directory, others) as (services, watched):
            began = time.monotonic()
            for number in range(count):
                end = began + (number + 1) * stretch_s
                played.records += _publish(place, end - REST_S, victim)
                _collect_garbage(services.values())
                time.sleep(max(0.0, end - time.monotonic()))
            time.sleep(1.0)  # the last reading of the last stretch
            found = trends(list(watched.readings), began + warm * stretch_s, stretch_s)
            company = [*services.values(), *others]
            played.wrong += [f"{service.name} ended by itself" for service in company if not service.running]
            played.settle(place)
        log = read_wait_log(place)
        played.lines.append(f"{log.outcomes['expired']} expired; slopes from {WARM_UP_SHARE:.0%} of the time on")
        played.judge(found, SERVICES, count - warm)
        played.wrong += inexact(place, log, played.records)
    return played


def play_storm(stage: Stage, minutes: float, directory: Path) -> Played:
    """Have the downstream be away for some minutes under a steady load, and wait until every record is settled."""
    played = Played()
    with (
        stage.place(directory, STORM_SETTINGS, INPUT_PARTITIONS) as place,
        ExitStack() as company,
    ):
        downstream = stage.downstream(place, "100%:20ms", "")
        services, watched = company.enter_context(_watched(stage, place, directory, [downstream]))
        with Flow(place, STORM_RATE_PER_S, "orders") as flow:
            _catch_up(place, flow, STORM_RATE_PER_S)
            downstream.kill()
            began = time.monotonic()
            while time.monotonic() < began + 60 * minutes:
                flow.require_running()
                time.sleep(POLL_S)
            downstream.start()
            ended = time.monotonic()
            time.sleep(AFTER_S)
            flow.end()
        played.records = flow.published
        played.settle(place)
        settled_s = time.monotonic() - ended
        statuses = {name: service.stop() for name, service in services.items()}
        played.wrong += [f"{name} ended with status {status}" for name, status in statuses.items() if status != 0]
        found = trends(watched.between(began, ended), began, (ended - began) / (STORM_STRETCHES + 0.5))
        memory = [one for one in found if one.measure == "rss_bytes" and one.name in processes_of(PROCESSORS)]
        played.judge(memory, PROCESSORS, STORM_STRETCHES)
        log = read_wait_log(place)
        done, dead, retried = (log.outcomes[outcome] for outcome in ("done", "dead_lettered", "retried"))
        played.lines.append(
            f"settled {settled_s:.0f} s after the downstream's return: {done} done, {dead} dead-lettered; {retried} "
            f"retry records"
        )
        played.wrong += [] if done + dead == played.records else [f"{done} + {dead} are not {played.records}"]
        played.wrong += inexact(place, log, played.records, expires=False)
    return played


def _play_redrive(stage: Stage, records: int, rate_per_s: float, directory: Path) -> Played:
    return Played(records, *play_redrive(stage, records, rate_per_s, directory))


def _publish(place: Place, until: float, victim: Service) -> int:
    """Publish up to a moment, killing the victim each minute; return how many records that were."""
    next_kill = time.monotonic() + FIRST_KILL_S
    with Flow(place, SOAK_RATE_PER_S, "orders") as flow:
        while time.monotonic() < until:
            flow.require_running()
            time.sleep(POLL_S)
            if time.monotonic() > next_kill:
                next_kill += KILL_EVERY_S
                victim.kill()
                victim.start()
        flow.end()
    return flow.published


def _collect_garbage(services: Iterable[Service]) -> None:
    """Have each JVM keep what it needs and no more: how far a heap has filled up meanwhile says nothing about leaks.

    Raises:
        RuntimeError: there is no `jcmd`, which comes with a JDK.
        subprocess.SubprocessError: a JVM didn't answer within a minute, or refused.
    """
    jcmd = which("jcmd", path=str(Path(java_command()).resolve().parent)) or which("jcmd")
    if jcmd is None:
        raise RuntimeError("saw no jcmd next to java or on the PATH, expected that of a JDK 17 or newer. Install one")
    for service in services:
        for jvm in service.jvms():
            subprocess.run([jcmd, str(jvm.pid), "GC.run"], check=True, capture_output=True, timeout=60)
