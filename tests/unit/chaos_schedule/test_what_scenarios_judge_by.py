"""What the outage and the soak call false, and what they call growth."""

from __future__ import annotations

import pytest

from tests.chaos.log_reading import WaitLog
from tests.chaos.resources import Reading, flat, trends

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


def readings(growth_bytes: int, growth_files: int = 0) -> list[Reading]:
    """Return a minute of one process of 100 MB that breathes, and grows in all by so much."""
    return [
        Reading(
            at_s=float(second),
            name="sink-1 java",
            pid=1,
            rss_bytes=100_000_000 + (second % 7) * 300_000 + growth_bytes * second // 60,
            threads=40 + second % 2,
            open_files=200 + growth_files * second // 60,
        )
        for second in range(61)
    ]


@pytest.mark.parametrize(
    ("taken", "growing"),
    [
        (readings(0), set()),
        (readings(5_000_000), set()),
        (readings(30_000_000), {"rss_bytes"}),
        (readings(0, 30), {"open_files"}),
        (readings(-30_000_000), set()),
    ],
)
def test_growth_beyond_what_a_heap_breathes_is_seen(taken: list[Reading], growing: set[str]) -> None:
    assert {trend.measure for trend in trends(taken) if not flat(trend)} == growing


def test_a_slope_is_told_by_the_hour() -> None:
    (memory, _, _) = trends(readings(30_000_000))
    assert memory.per_hour == pytest.approx(60 * 30_000_000, rel=0.02)


def test_processes_of_one_name_are_not_mixed() -> None:
    others = [Reading(r.at_s, r.name, 2, 10 * r.rss_bytes, r.threads, r.open_files) for r in readings(0)]
    assert all(flat(trend) for trend in trends([*readings(0), *others]))
