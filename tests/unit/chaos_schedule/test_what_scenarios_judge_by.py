"""What the outage and the soak call false, and what they call growth."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import psutil
import pytest

from tests.chaos.log_reading import WaitLog
from tests.chaos.resources import (
    CATCHING_UP_BYTES,
    HEAP_BYTES,
    MIB,
    MOST_BYTES,
    Reading,
    Resources,
    Trend,
    flat,
    most_held,
    processes_of,
    trends,
    unread,
)
from tests.chaos.service import Service
from tests.chaos.soak import Soak, stretches_of
from tests.support.compose_variables import COMPOSE_FILE
from tests.support.waiting import wait_until
from wait_registry.settings.runtime import SparkSettings
from wait_registry.settings.sink import SinkSettings

REGISTRATION = {"ORIGINAL_PARTITION": b"0", "ORIGINAL_OFFSET": b"7"}
Step = tuple[bytes | None, dict[str, bytes]]
WAIT: Step = (b"value", REGISTRATION)
DONE: Step = (None, {"WAIT_OUTCOME": b"done"})
EXPIRED: Step = (None, {"WAIT_OUTCOME": b"expired"})


def read(*steps: Step) -> WaitLog:
    """Return what is found in a log of one id."""
    log = WaitLog()
    for number, (value, headers) in enumerate(steps):
        log.take(b"id", value, headers, 1000 * number)
    return log


@pytest.mark.parametrize(
    ("steps", "false", "standing"),
    [
        ((WAIT, DONE), 0, 0),
        ((WAIT, EXPIRED), 0, 0),
        ((WAIT,), 0, 1),
        ((WAIT, DONE, WAIT), 0, 1),
        ((WAIT, DONE, EXPIRED), 1, 0),
        ((WAIT, EXPIRED, EXPIRED), 1, 0),
        ((WAIT, EXPIRED, DONE), 1, 0),
    ],
)
def test_an_export_of_what_does_not_stand_or_is_still_worked_on_is_false(
    steps: tuple[Step, ...], false: int, standing: int
) -> None:
    log = read(*steps)
    assert (len(log.false_exports), len(log.standing)) == (false, standing)
    assert log.registered[0] == {7}


def test_completions_are_counted_in_the_second_of_their_tombstone() -> None:
    assert dict(read(WAIT, DONE, WAIT, DONE, WAIT, EXPIRED).done_by_second) == {1: 1, 3: 1}


MINUTES, STRETCH_S = 40, 300.0
NAME = "processor-1 python"


def readings(
    *, leaked_bytes: int = 0, leaked_files: int = 0, leaked_threads: int = 0, busy_files: int = 0, pid: int = 1
) -> list[Reading]:
    """Return 40 minutes of a process of 100 MB that rests for half a minute in every five.

    Args:
        leaked_bytes: memory that it gained in all, evenly.
        leaked_files: files that it opened in all and never closed.
        leaked_threads: the same of threads.
        busy_files: how many more it has open at the end than at the beginning, but not when it rests.
        pid: its process id.
    """
    taken = []
    for second in range(60 * MINUTES + 1):
        share, resting = second / (60 * MINUTES), second % STRETCH_S >= STRETCH_S - 30
        busy = 0 if resting else 40 + int(busy_files * share)
        taken.append(
            Reading(
                at_s=1000.0 + second,
                name=NAME,
                pid=pid,
                rss_bytes=100_000_000 + (second % 7) * 300_000 + int(leaked_bytes * share),
                threads=40 + second % 2 + int(leaked_threads * share),
                open_files=20 + busy + int(leaked_files * share),
            )
        )
    return taken


def of(taken: list[Reading]) -> list[Trend]:
    """Return its trends."""
    return trends(taken, 1000.0, STRETCH_S)


@pytest.mark.parametrize(
    ("taken", "growing"),
    [
        (readings(), set()),
        (readings(leaked_bytes=5_000_000), set()),
        (readings(leaked_bytes=30_000_000), {"rss_bytes"}),
        (readings(leaked_bytes=-30_000_000), set()),
        (readings(leaked_threads=6), {"threads"}),
        (readings(leaked_files=10), {"open_files"}),
        (readings(busy_files=200), set()),
        (readings(busy_files=-40, leaked_files=10), {"open_files"}),
    ],
)
def test_what_stays_at_rest_grows_and_what_there_is_to_do_does_not_count(
    taken: list[Reading], growing: set[str]
) -> None:
    assert {trend.measure for trend in of(taken) if not flat(trend)} == growing


def test_a_slope_is_told_by_the_hour() -> None:
    (memory, _, _) = of(readings(leaked_bytes=30_000_000))
    assert memory.per_hour == pytest.approx(1.5 * 30_000_000, rel=0.02)


def test_processes_of_one_name_are_not_mixed() -> None:
    others = [replace(reading, rss_bytes=10 * reading.rss_bytes) for reading in readings(pid=2)]
    assert all(flat(trend) for trend in of([*readings(), *others]))


def test_a_stretch_that_is_not_over_is_left_out() -> None:
    cut = readings(busy_files=100)[: -int(STRETCH_S) - 60]
    assert {trend.stretches for trend in of(cut)} == {int(60 * MINUTES / STRETCH_S) - 2}


@pytest.mark.parametrize(
    ("taken", "complete"),
    [
        (readings(), True),
        (readings()[: 60 * MINUTES // 2], False),
        (readings()[:3], False),
        ([], False),
    ],
)
def test_a_trend_of_a_part_of_the_time_is_none(taken: list[Reading], complete: bool) -> None:
    assert (unread(of(taken), [NAME], int(60 * MINUTES / STRETCH_S)) == []) is complete


def test_of_each_service_its_own_process_and_its_jvm_are_to_be_read() -> None:
    assert processes_of(["processor-1", "sink-1"]) == ["processor-1 python", "sink-1 python", "sink-1 java"]


def test_a_soak_of_which_nothing_was_read_is_not_kept() -> None:
    assert not Soak(60, 720_000, 0, [], [*unread([], [NAME], 8)]).kept
    assert not Soak(60, 720_000, 5, of(readings(leaked_files=10)), []).kept
    assert Soak(60, 720_000, 5, of(readings()), []).kept


@pytest.mark.parametrize(("minutes", "count", "length_s"), [(60, 12, 300.0), (10, 10, 60.0), (1, 1, 60.0)])
def test_a_soak_has_twelve_stretches_of_a_minute_at_least(minutes: float, count: int, length_s: float) -> None:
    stretches, stretch_s = stretches_of(minutes)
    assert (len(stretches), stretch_s) == (count, length_s)


def held(at_s: float, name: str, megabytes: int, pid: int = 1) -> Reading:
    """Return what a process held in a look."""
    return Reading(at_s, name, pid, megabytes * 1_000_000, 40, 20)


def test_a_service_holds_what_its_processes_hold_in_one_look_not_each_at_its_worst() -> None:
    taken = [
        held(1.0, "sink-1 java", 900),
        held(1.0, "sink-1 python", 100),
        held(2.0, "sink-1 java", 700),
        held(2.0, "sink-1 python", 400),
        held(2.0, "sink-10 java", 5000),
    ]
    assert most_held(taken, "sink-1") == 1_100_000_000
    assert most_held(taken, "sink-2") == 0


def test_a_jvm_about_to_run_a_program_counts_once() -> None:
    twice = [held(1.0, "sink-1 java", 900), held(1.0, "sink-1 java", 900, pid=2), held(1.0, "sink-1 python", 100)]
    assert most_held(twice, "sink-1") == 1_000_000_000


def test_what_spark_may_hold_follows_from_its_heap_and_a_batch() -> None:
    assert SparkSettings().driver_memory == f"{HEAP_BYTES // MIB}m"
    assert SinkSettings().max_batch_bytes == 32 * MIB
    assert max(MOST_BYTES["sink"], MOST_BYTES["sweeper"]) <= 1_410_000_000


def test_what_services_may_hold_fits_their_containers() -> None:
    assert limit_of("sink") == CATCHING_UP_BYTES
    assert [service for service, most in MOST_BYTES.items() if most > limit_of(service)] == []


def limit_of(service: str) -> int:
    """Return the memory that docker-compose.yml gives a service, bytes."""
    limit = re.search(
        rf"^  {service}:\n(?:    .*\n)*?    mem_limit: (\d+)([mg])\n", COMPOSE_FILE.read_text("utf-8"), re.M
    )
    assert limit is not None
    return int(limit[1]) * {"m": MIB, "g": 1024 * MIB}[limit[2]]


def test_all_that_one_look_reads_has_one_time() -> None:
    here = cast(Service, SimpleNamespace(name="sink-1", tree=lambda: [psutil.Process()]))
    with Resources([here, here], 0.01) as watched:
        wait_until(lambda: len(watched.readings) >= 4, 20, "two looks")
    times = [reading.at_s for reading in watched.readings]
    assert times[0] == times[1] < times[2] == times[3]
