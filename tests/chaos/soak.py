"""The soak: a steady load through all services for long, and whether memory, threads or open files grow."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from shutil import which

from tests.chaos.exactness import inexact, read_wait_log
from tests.chaos.load import Flow
from tests.chaos.report import Played
from tests.chaos.resources import Resources, processes_of, trends, unread
from tests.chaos.service import Service, kill_all
from tests.chaos.settling import Patience, settle
from tests.chaos.stage import Place, Stage
from tests.support.waiting import wait_until
from wait_registry.jvm import java_command

NAMES = ("processor-1", "processor-2", "sink-1", "sweeper-1")
INPUT_PARTITIONS = 6
RATE_PER_S = 200.0
LATENCIES, FAILURES = "89%:50ms,10%:200ms-600ms,1%:hang", "1%:503,0.5%:drop"
READY_S = 180.0
STILL_S, SETTLE_S = 300.0, 600.0
POLL_S = 1.0
# The time is divided into this number of stretches, of a minute at least. Each ends with a rest: what is open then is
# not in use, so that it grows by leaks alone. Idle connections to the downstream are kept for 15 s.
STRETCHES = 12
LEAST_STRETCH_S = 60.0
REST_S = 30.0
# Caches, heaps and compiled code come to their size first.
WARM_UP_SHARE = 0.3
# So that the sweeper always has something to do: a processor is killed, and started again, this often.
KILL_EVERY_S, FIRST_KILL_S = 60.0, 15.0
SETTINGS = {
    "processor.max_in_flight": 50,
    "processor.handler_timeout_s": 2,
    "processor.max_attempts": 1,
    "processor.ttl_s": 15,
    "processor.margin_s": 5,
    "wait.partitions": 4,
    "wait.skew_allowance_s": 1,
    "sweeper.interval_s": 5,
    "kafka.librdkafka": {"session.timeout.ms": 6000},
}


def play_soak(stage: Stage, minutes: float, directory: Path) -> Played:
    """Let all services work for some minutes, and return what became of their memory, threads and open files."""
    count = min(STRETCHES, max(int(60 * minutes / LEAST_STRETCH_S), 1))
    stretch_s = 60 * minutes / count
    with stage.place(directory, SETTINGS, INPUT_PARTITIONS) as place, ExitStack() as resources:
        services = [stage.service(place, name) for name in NAMES]
        victim = stage.service(place, "processor-3")
        company = [*services, stage.downstream(place, LATENCIES, FAILURES), victim]
        resources.callback(kill_all, company)
        for service in company:
            service.start()
        wait_until(lambda: all(service.ready() for service in company), READY_S, "readiness of all services")
        records = 0
        with Resources(services) as watched:
            began = time.monotonic()
            for number in range(count):
                end = began + (number + 1) * stretch_s
                records += _publish(place, end - REST_S, victim)
                _collect_garbage(services)
                time.sleep(max(0.0, end - time.monotonic()))
            time.sleep(POLL_S)
        watched.write(directory / "readings.csv")
        wrong = [f"{service.name} ended by itself" for service in company if not service.running]
        unsettled = settle(place, Patience(STILL_S, SETTLE_S))
        log = read_wait_log(place)
        warm = math.ceil(WARM_UP_SHARE * count)
        found = trends(watched.readings, began + warm * stretch_s, stretch_s)
        wrong += unread(found, processes_of(NAMES), count - warm)
        wrong += [f"grows: {trend}" for trend in found if not trend.flat]
        wrong += inexact(place, log, records)
        wrong += [f"not settled: {unsettled}"] if unsettled else []
        expired = f"{log.outcomes['expired']} expired; slopes from {WARM_UP_SHARE:.0%} of the time on"
        return Played(records, [expired, *map(str, found)], wrong)


def _publish(place: Place, until: float, victim: Service) -> int:
    """Publish up to a moment, killing the victim each minute; return how many records that were."""
    next_kill = time.monotonic() + FIRST_KILL_S
    with Flow(place, RATE_PER_S, "orders") as flow:
        while time.monotonic() < until:
            flow.require_running()
            time.sleep(POLL_S)
            if time.monotonic() > next_kill:
                next_kill += KILL_EVERY_S
                victim.kill()
                victim.start()
        flow.end()
    return flow.published


def _collect_garbage(services: Sequence[Service]) -> None:
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
