"""The scenarios of `make chaos SCENARIO=...`: a long outage, a soak and a storm, each a steady load.

The outage: Postgres, the sink, or both are down while a million records flow. The soak: whether memory, threads or open
files grow over a long time. The storm: the downstream is away, so that every call fails and is to be repeated. All end
with a reconciliation in which every record has its end. So does a redrive under kills (`tests/chaos/redrive.py`).
"""

from __future__ import annotations

import math
import subprocess
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any, Final

from tests.chaos.checker.bounds import MIB
from tests.chaos.exactness import inexact, read_scenario
from tests.chaos.load import Flow
from tests.chaos.redrive import play_redrive
from tests.chaos.resources import LEAST_STRETCHES, Resources, Stretch, Trend, held, trends, unread
from tests.chaos.service import Cause, Service, kill_all, listens
from tests.chaos.settling import settle
from tests.chaos.stage import Place, Stage
from tests.support.committed_offsets import committed
from tests.support.waiting import wait_until
from wait_registry.java.jars import java_command
from wait_registry.records.tombstone import Outcome
from waitreg.reconcile.wait_log import WaitEntry

PROCESSORS = ("processor-1", "processor-2")
SERVICES = (*PROCESSORS, "sink-1", "sweeper-1")
INPUT_PARTITIONS = 6
READY_S, READING_S = 300.0, 60.0
STILL_S, SETTLE_S = 300.0, 900.0
POLL_S, SAID_EVERY_S = 0.2, 15.0
_SETTINGS: Mapping[str, Any] = {
    "processor.max_attempts": 1,
    "processor.margin_s": 5,
    "wait.partitions": 4,
    "wait.skew_allowance_s": 1,
    "kafka.librdkafka": {"session.timeout.ms": 6000},
}

RECORDS, RATE_PER_S = 1_000_000, 4000.0
OUTAGES: Final = (("postgres",), ("sink",), ("postgres", "sink"))
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
# The time is divided into this number of stretches, or into fewer if they would be shorter than the least. Each ends
# with a rest: what is open then is not in use, so that it grows by leaks alone. Idle connections to the downstream are
# kept for 15 s, Spark's Kafka consumers for 40 s, its Python workers for 60 s.
SOAK_STRETCHES, LEAST_STRETCH_S, REST_S = 12, 150.0, 75.0
# Caches, heaps and compiled code come to their size first.
WARM_UP_SHARE = 0.3
LEAST_SOAK_MINUTES = math.ceil(LEAST_STRETCHES / (1 - WARM_UP_SHARE)) * LEAST_STRETCH_S / 60
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
    """What a scenario came to: what is wrong, in words; what was measured is printed."""

    wrong: list[str] = field(default_factory=list)
    began_s: float = field(default_factory=time.monotonic)
    said: tuple[str, float] = ("", 0.0)

    def say(self, text: str) -> None:
        """Print a line with the seconds since the beginning."""
        print(f"{time.monotonic() - self.began_s:6.0f} s  {text}", flush=True)

    def say_at_times(self, text: str) -> None:
        """Print what a wait has seen, if it is news and some time after the last line of a wait."""
        now_s, (before, said_s) = time.monotonic(), self.said
        if text != before and now_s - said_s >= SAID_EVERY_S:
            self.said = (text, now_s)
            self.say(text)

    def require(self, holds: bool, problem: str) -> None:
        """Add a problem unless something holds."""
        self.wrong += [] if holds else [problem]

    def judge(self, found: Sequence[Trend], names: Sequence[str], stretches: int) -> None:
        """Judge the trends of these processes, and which of them were read too rarely."""
        for trend in found:
            self.say(str(trend))
            self.require(trend.flat, f"grows: {trend}")
        self.wrong += unread(found, names, stretches)

    def settle(self, place: Place) -> None:
        """Wait until nothing is left to do."""
        unsettled = settle(place, STILL_S, SETTLE_S, said=self.say_at_times)
        self.say(unsettled or "all has settled")
        self.require(not unsettled, f"not settled: {unsettled}")

    def reconcile(self, place: Place, published: int, company: Iterable[Service]) -> Sequence[WaitEntry]:
        """Judge where every record ended that the processors of a company had; return the tombstones."""
        ends = (ended for one in company for ended in one.exits if one.kind == "processor")
        kills_ms = [ended.at_ms for ended in ends if ended.cause is Cause.KILLED]
        evidence = read_scenario(place, kills_ms)
        tombstones = [entry for entry in evidence.wait_log if entry.outcome]
        counts = Counter(entry.outcome for entry in tombstones)
        self.say(f"{published} records: {', '.join(f'{count} {outcome}' for outcome, count in sorted(counts.items()))}")
        self.wrong += inexact(place, evidence, published)
        return tombstones


def play_scenario(name: str, folder: Path, **wanted: Any) -> bool:
    """Play a scenario, print what it came to, and return whether it was kept; an outage is three."""
    plays: Mapping[str, Sequence[Callable[[Stage, Path, Played], None]]] = {
        "outage": [partial(play_outage, down=down, **wanted) for down in OUTAGES],
        "soak": [partial(play_soak, **wanted)],
        "storm": [partial(play_storm, **wanted)],
        "redrive": [partial(_play_redrive, **wanted)],
    }
    wrong: list[str] = []
    for number, play in enumerate(plays[name], 1):
        played = Played()
        played.say(f"{name} {number} of {len(plays[name])}: {wanted}")
        try:
            with Stage() as stage:
                play(stage, folder / f"{name}-{number}", played)
        except Exception:  # noqa: BLE001 - printed, and the reason why it isn't kept
            played.wrong.append(f"interrupted: {traceback.format_exc()}")
        for problem in played.wrong:
            played.say(f"WRONG: {problem}")
        wrong += played.wrong
    return not wrong


@contextmanager
def _watched(
    stage: Stage, place: Place, played: Played, others: Sequence[Service] = ()
) -> Iterator[tuple[dict[str, Service], Resources]]:
    """Start the services and ``others``, and read the resources of the services."""
    with ExitStack() as resources:
        services = {name: stage.service(place, name) for name in SERVICES}
        company = [*services.values(), *others]
        resources.callback(kill_all, company)
        for service in company:
            service.start()
        wait_until(lambda: all(one.ready() for one in company), READY_S, "readiness of all services")
        played.say("all services are ready")
        with Resources(list(services.values())) as watched:
            yield services, watched
        watched.write(place.directory / "readings.csv")


def play_outage(stage: Stage, folder: Path, played: Played, *, down: Sequence[str], records: int, rate: float) -> None:
    """Play one outage of "postgres", "sink" or both and judge it."""
    with (
        stage.place(folder, OUTAGE_SETTINGS, INPUT_PARTITIONS) as place,
        _watched(stage, place, played) as (services, watched),
    ):
        with Flow(place, rate) as flow:
            _catch_up(place, flow, rate, played)
            time.sleep(BEFORE_S)
            _take_down(stage, services, down)
            began, goal = time.monotonic(), flow.published + records
            played.say(f"{' and '.join(down)} down for {records} records")
            _flow_until(lambda: flow.published >= goal, flow, played)
            ended = time.monotonic()
            _bring_back(stage, services, down)
            flow.end()
        played.settle(place)
        exact = time.monotonic()
        # processor-2 was killed, and not started again.
        _end([service for name, service in services.items() if name != PROCESSORS[1]], played)
        tombstones = played.reconcile(place, flow.published, services.values())
    _judge_outage(played, tombstones, watched, began, ended, exact)


def _judge_outage(
    played: Played, tombstones: Iterable[WaitEntry], watched: Resources, began: float, ended: float, exact: float
) -> None:
    """Judge an outage by its begin, its end, and when all was settled (monotonic clock, s)."""
    finished = (entry for entry in tombstones if entry.outcome != Outcome.EXPIRED)
    by_second, epoch_s = Counter(entry.append_ms // 1000 for entry in finished), time.time() - time.monotonic()

    def per_second(began_s: float, ended_s: float) -> float:
        seconds = range(int(epoch_s + began_s) + 1, int(epoch_s + ended_s))  # whole ones only
        return sum(by_second[second] for second in seconds) / max(1, len(seconds))

    before, during = per_second(began - BEFORE_S, began), per_second(began, ended)
    share = during / before if before else 0.0
    played.say(f"done {before:.0f}/s before and {during:.0f}/s during {ended - began:.0f} s (share {share:.3f})")
    played.require(share >= LEAST_DONE, f"a share of {share:.3f} was done, expected {LEAST_DONE}")
    _judge_memory(played, watched, began, ended, OUTAGE_STRETCHES)
    peak = max((one.bytes for one in held(watched.between(ended, exact)) if one.name == "sink-1"), default=0)
    played.say(f"sink at most {peak / 1e6:.0f} MB while it caught up; exact after {exact - ended:.0f} s")
    played.require(0 < peak <= CATCHING_UP_BYTES, f"the sink held {peak} bytes while it caught up")


def _judge_memory(played: Played, watched: Resources, began: float, ended: float, stretches: int) -> None:
    each = (ended - began) / stretches
    parts = [(began + number * each, began + (number + 1) * each) for number in range(stretches)]
    found = trends(watched.readings, PROCESSORS, parts)
    played.judge([one for one in found if one.measure == "rss_bytes"], PROCESSORS, stretches)


def _catch_up(place: Place, flow: Flow, rate_per_s: float, played: Played) -> None:
    """Wait until the processors have done what came while they joined: it would count for the time before."""

    def has_caught_up() -> bool:
        flow.require_running()
        behind = _behind(place, flow.published)
        played.say_at_times(f"{behind} records aren't consumed")
        return behind < CAUGHT_UP_S * rate_per_s

    time.sleep(WARM_UP_S)
    wait_until(has_caught_up, READY_S, "the processors keep up with the load", POLL_S)
    played.say("the processors keep up with the load")


def _behind(place: Place, published: int) -> int:
    bootstrap, group = place.settings.kafka.bootstrap_servers, place.settings.processor.group
    return published - sum(max(one, 0) for one in committed(bootstrap, group, place.input, INPUT_PARTITIONS))


def _is_consumed(place: Place, published: int) -> bool:
    return _behind(place, published) <= 0


def _flow_until(over: Callable[[], bool], flow: Flow, played: Played) -> None:
    while not over():
        flow.require_running()
        played.say_at_times(f"{flow.published} records published")
        time.sleep(POLL_S)


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


def _end(services: Iterable[Service], played: Played) -> None:
    for service in services:
        service.stop()
        played.require(service.stopped_with == 0, f"{service.name} ended with status {service.stopped_with}")


def play_soak(stage: Stage, directory: Path, played: Played, *, minutes: float) -> None:
    """Let all services work for some minutes, and judge what became of their memory, threads and open files."""
    count, published = min(SOAK_STRETCHES, int(60 * minutes / LEAST_STRETCH_S)), 0
    stretch_s, warm = 60 * minutes / count, math.ceil(WARM_UP_SHARE * count)
    with stage.place(directory, SOAK_SETTINGS, INPUT_PARTITIONS) as place:
        others = [stage.downstream(place, LATENCIES, FAILURES), victim := stage.service(place, "processor-3")]
        with _watched(stage, place, played, others) as (services, watched):
            rests: list[Stretch] = []
            for number in range(1, count + 1):
                published += _publish(place, time.monotonic() + stretch_s - REST_S, victim)
                wait_until(partial(_is_consumed, place, published), READY_S, "all records are consumed")
                _collect_garbage(services.values())
                rests.append((time.monotonic(), time.monotonic() + REST_S))
                wait_until(partial(watched.has_read, rests[-1][1]), REST_S + READING_S, "the last reading of a rest")
                played.say(f"stretch {number} of {count}")
            found = trends(watched.readings, SERVICES, rests[warm:])
            company = [*services.values(), *others]
            played.wrong += [f"{service.name} ended by itself" for service in company if not service.running]
            played.settle(place)
        played.judge(found, SERVICES, count - warm)
        played.reconcile(place, published, company)


def play_storm(stage: Stage, directory: Path, played: Played, *, minutes: float) -> None:
    """Have the downstream be away for some minutes under a steady load, and wait until every record is settled."""
    with stage.place(directory, STORM_SETTINGS, INPUT_PARTITIONS) as place, ExitStack() as company:
        downstream = stage.downstream(place, "100%:20ms", "")
        services, watched = company.enter_context(_watched(stage, place, played, [downstream]))
        with Flow(place, STORM_RATE_PER_S, "orders") as flow:
            _catch_up(place, flow, STORM_RATE_PER_S, played)
            downstream.kill()
            began = time.monotonic()
            played.say("the downstream is away")
            _flow_until(lambda: time.monotonic() >= began + 60 * minutes, flow, played)
            downstream.start()
            ended = time.monotonic()
            played.say("the downstream is started again")
            _flow_until(lambda: time.monotonic() >= ended + AFTER_S, flow, played)
            flow.end()
        played.settle(place)
        played.say(f"settled {time.monotonic() - ended:.0f} s after the downstream's return")
        _end(services.values(), played)
        _judge_memory(played, watched, began, ended, STORM_STRETCHES)
        played.reconcile(place, flow.published, services.values())


def _play_redrive(stage: Stage, directory: Path, played: Played, *, records: int, rate: float) -> None:
    measured, wrong = play_redrive(stage, records, rate, directory, played.say)
    for line in measured:
        played.say(line)
    played.wrong += wrong


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
