"""`make chaos SEED=n` replays: what a seed decides is the same each time, and whatever is decided can be done."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos import drawing
from tests.chaos.drawing import schedule_of
from tests.chaos.faults.catalogue import SERVERS, fault_of
from tests.chaos.mixture import MAX_INPUT_BYTES, MAX_REGISTRATION_BYTES, ROOM_BYTES, mixture
from tests.chaos.schedule import SERVICES
from tests.chaos.stage import MOST, settings_of
from tests.support.naming import Names
from tests.support.settings import settings_against
from wait_registry.settings.relations import Service, relation_problems

SEEDS = st.integers(min_value=0, max_value=10**9)
MANY = range(1, 400)
HELD = """\
seed 1: 2142 records at 119/s: 68 % orders, 5 % binary, 21 % hostile, 2 % empty, 3 % null, 1 % huge, 0 % too_large
  2 processors, 1 sinks, 1 sweepers; 3 input partitions, 3 wait partitions
  N 100, look-ahead 100, 2 tries of 2 s, TTL 12 s, commits each 0.2 s
  group protocol consumer, cooperative-sticky; dlq (at most 2 deliveries), chunks of 5000 rows
  downstream 50%:370ms,49%:741ms-1482ms,1%:hang; fails never
  at  3.0 s freeze of processor-2 for 6.2 s
  at  4.2 s freeze of processor-2 for 5.1 s
  at  6.7 s freeze of postgres for 6.1 s
  at  7.7 s kill of sweeper-1 for 2.1 s

seed 17: 2556 records at 142/s: 63 % orders, 14 % binary, 11 % hostile, 4 % empty, 5 % null, 2 % huge, 1 % too_large
  3 processors, 1 sinks, 1 sweepers; 3 input partitions, 3 wait partitions
  N 12, look-ahead 12, 1 tries of 1.5 s, TTL 9 s, commits each 0.1 s
  group protocol classic, roundrobin; dlq (at most 3 deliveries), chunks of 5000 rows
  downstream 50%:57ms,49%:115ms-230ms,1%:hang; fails never
  at  4.1 s kill of processor-2 for 2.0 s
  at  9.3 s truncate_checkpoint of sink-1 for 2.9 s
  at 11.0 s delete_checkpoint of sink-1 for 0.9 s
  at 13.4 s refuse_broker_link of sink-1 for 2.3 s

seed 42: 1926 records at 107/s: 66 % orders, 10 % binary, 15 % hostile, 3 % empty, 5 % null, 0 % huge, 1 % too_large
  2 processors, 2 sinks, 1 sweepers; 1 input partitions, 3 wait partitions
  N 100, look-ahead 100, 2 tries of 1 s, TTL 8 s, commits each 1 s
  group protocol consumer, cooperative-sticky; redeliver (at most 2 deliveries), chunks of 20 rows
  downstream 100%:500ms; fails 1%:503
  at  4.3 s kill of processor-1 for 0.2 s
  at  5.6 s stall_broker_link of sink-1 for 3.0 s
  at 11.1 s freeze of sink-2 for 7.0 s
  at 13.2 s terminate of sink-1 for 0.7 s
  at 13.8 s kill of processor-2 for 1.4 s
  at 14.8 s end_sessions of postgres for 0.0 s
"""


@pytest.mark.parametrize("told", HELD.strip().split("\n\n"), ids=lambda told: told.split(":")[0])
def test_the_same_seed_gives_the_same_schedule(told: str) -> None:
    seed = int(told.split(":")[0].removeprefix("seed "))
    assert "\n".join(schedule_of(seed).lines()) == told


def test_other_seeds_give_other_schedules() -> None:
    assert len({"\n".join(list(schedule_of(seed).lines())[1:]) for seed in MANY}) == len(MANY)


@given(SEEDS)
def test_settings_are_ones_that_every_service_takes(seed: int) -> None:
    overrides = {**settings_of(schedule_of(seed)), "processor.handler": "http://127.0.0.1:1/"}
    settings = settings_against("127.0.0.1:1", "postgresql://x", Names(), overrides)
    services: tuple[Service, ...] = ("processor", "sink", "sweeper")
    problems = {problem.message for service in services for problem in relation_problems(settings, service)}
    assert problems == set()


@given(SEEDS)
def test_every_fault_can_be_done_to_somebody_who_is_there(seed: int) -> None:
    schedule = schedule_of(seed)
    there = {*SERVERS, "downstream", "group", "input", *(name for kind in SERVICES for name in schedule.names_of(kind))}
    assert 2 <= len(schedule.faults) <= 6
    assert [fault.at_s for fault in schedule.faults] == sorted(fault.at_s for fault in schedule.faults)
    for fault in schedule.faults:
        assert fault.target in there
        assert callable(fault_of(fault))


@given(SEEDS)
def test_no_more_processes_than_there_are_links_for(seed: int) -> None:
    schedule = schedule_of(seed)
    assert all(1 <= len(schedule.names_of(kind)) <= MOST[kind] for kind in SERVICES)


def test_every_fault_is_drawn_within_a_night() -> None:
    drawn = Counter((fault.name, _kind(fault.target)) for seed in MANY for fault in schedule_of(seed).faults)
    of_all = {(drawing.HOLD_PRODUCE, "group")}
    assert set(drawn) == {(name, kind) for name, kind, _ in drawing.ANY} | of_all


def test_every_run_begins_with_a_processor_that_leaves_something_behind() -> None:
    for seed in MANY:
        assert any(_kind(fault.target) == "processor" for fault in schedule_of(seed).faults)


def test_a_load_has_records_of_every_kind_and_is_the_same_each_time() -> None:
    kinds = ("orders", "binary", "hostile", "empty", "null", "huge", "too_large")
    make = mixture([(kind, 1) for kind in kinds])
    made = [make(5, index) for index in range(300)]
    assert made == [mixture([(kind, 1) for kind in kinds])(5, index) for index in range(300)]
    values = [record.value for record in made]
    assert None in values
    assert b"" in values
    sizes = {len(value) for value in values if value is not None}
    assert MAX_REGISTRATION_BYTES - ROOM_BYTES in sizes, "as large as can be registered"
    assert any(MAX_REGISTRATION_BYTES < size <= MAX_INPUT_BYTES - ROOM_BYTES for size in sizes), "too large for that"


@given(SEEDS)
def test_who_has_nothing_to_do_behind_the_load_fails_well_before_its_end(seed: int) -> None:
    for fault in schedule_of(seed).faults:
        if fault.target == "downstream" or fault.name == drawing.HOLD_PRODUCE:
            assert fault.at_s <= drawing.LAST_FAULT_S < drawing.LOAD_S - 3


def test_where_some_processors_have_no_partition_all_of_them_are_held() -> None:
    for schedule in map(schedule_of, MANY):
        some_idle = schedule.load.input_partitions < schedule.settings.processors
        for fault in schedule.faults:
            if fault.name == drawing.HOLD_PRODUCE:
                assert (fault.target == "group") is some_idle


def _kind(target: str) -> str:
    return target.partition("-")[0]
