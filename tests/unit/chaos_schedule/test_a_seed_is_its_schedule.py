"""`make chaos SEED=n` replays: what a seed decides is the same each time, and whatever is decided can be done."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos import drawing
from tests.chaos.drawing import schedule_of
from tests.chaos.faults.catalogue import SERVERS, fault_of
from tests.chaos.mixture import MEAN_BYTES, ROOM_BYTES, max_input_bytes, mean_bytes, mixture
from tests.chaos.schedule import SERVICES, PlannedFault
from tests.chaos.stage import MOST, settings_of
from tests.support.naming import Names
from tests.support.settings import settings_against
from wait_registry.demo.behaviour import Behaviour
from wait_registry.settings.relations import Service, relation_problems

SEEDS = st.integers(min_value=0, max_value=10**9)
MANY = range(1, 400)
HELD = """\
seed 1: 1350 records at 75/s, 400 before; aborted transactions between them
  67 % orders, 7 % binary, 16 % hostile, 5 % empty, 4 % null, 0 % huge, 1 % too_large, 0 % bulky
  1 processors, 2 sinks, 1 sweepers; 1 input partitions, 3 wait partitions
  N 3, look-ahead 3, 1 tries of 1.5 s, TTL 8 s, commits each 0.2 s
  group protocol classic, cooperative-sticky; redeliver (at most 2 deliveries)
  at most: registrations of 150000 bytes, look-ahead 600000; batches 300 records, 67108864 bytes
  at most: chunks 5000 rows, 20000 bytes; tails 200 records
  downstream 90%:8ms-21ms,10%:25ms-34ms; fails 1%:400,0.5%:drop; 404 discards
  at  2.6 s kill of group for 1.6 s
  at  5.4 s stall_broker_link of sink-2 for 4.8 s
  at  9.2 s answer_503 of downstream for 2.0 s
  at 12.1 s add_partitions of input for 0.0 s

seed 17: 2646 records at 147/s, 0 before; no transactions
  38 % orders, 9 % binary, 18 % hostile, 1 % empty, 3 % null, 0 % huge, 1 % too_large, 30 % bulky
  1 processors, 2 sinks, 1 sweepers; 4 input partitions, 2 wait partitions
  N 12, look-ahead 24, 2 tries of 2 s, TTL 18 s, commits each 0.2 s
  group protocol classic, roundrobin; dlq (at most 3 deliveries)
  at most: registrations of 150000 bytes, look-ahead 150000; batches 300 records, 67108864 bytes
  at most: chunks 20 rows, 8388608 bytes; tails 2000000 records
  downstream 50%:23ms,49%:47ms-94ms,1%:47ms; fails 1%:400,0.5%:drop; 404 discards
  at  2.8 s kill of group for 2.1 s
  at 11.0 s stall_postgres_link of sink-2 for 5.8 s
  at 20.0 s kill of sweeper-1 for 2.9 s
  at 20.2 s young_postgres_link of sink-2 for 6.9 s

seed 42: 2502 records at 139/s, 0 before; no transactions
  56 % orders, 14 % binary, 22 % hostile, 3 % empty, 5 % null, 0 % huge, 0 % too_large, 0 % bulky
  1 processors, 1 sinks, 1 sweepers; 1 input partitions, 3 wait partitions
  N 12, look-ahead 24, 1 tries of 2 s, TTL 12 s, commits each 0.1 s
  group protocol classic, range; redeliver (at most 2 deliveries)
  at most: registrations of 150000 bytes, look-ahead 67108864; batches 250000 records, 1048576 bytes
  at most: chunks 5000 rows, 20000 bytes; tails 2000000 records
  downstream 100%:34ms; fails 5%:404,20%:400; no status discards
  at  2.6 s kill of group for 0.8 s
  at 17.1 s end_sessions of postgres for 0.0 s
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
    there = {*SERVERS, "downstream", "group", "everything", "input"}
    there |= {*(name for kind in SERVICES for name in schedule.names_of(kind))}
    assert 2 <= len(schedule.faults) <= 7
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
        assert any(_leaves_something(fault) for fault in schedule_of(seed).faults)


def test_in_some_runs_nothing_is_answered_until_a_processor_dies_with_its_hands_full() -> None:
    full = 0
    for seed in MANY:
        schedule = schedule_of(seed)
        hung = [fault for fault in schedule.faults if (fault.name, fault.for_s) == ("hang", drawing.FULL_HANDS_S + 0.5)]
        full += any(
            fault.at_s == pytest.approx(before.at_s + drawing.FULL_HANDS_S, abs=0.11) and _leaves_something(fault)
            for before in hung
            for fault in schedule.faults
        )
    assert 0.15 * len(MANY) < full < 0.35 * len(MANY)


@pytest.mark.parametrize("registration_bytes", [8_192, 150_000])
def test_a_load_has_records_of_every_kind_and_is_the_same_each_time(registration_bytes: int) -> None:
    kinds = ("orders", "binary", "hostile", "empty", "null", "huge", "too_large", "bulky")
    make = mixture([(kind, 1) for kind in kinds], registration_bytes)
    made = [make(5, index) for index in range(300)]
    assert made == [mixture([(kind, 1) for kind in kinds], registration_bytes)(5, index) for index in range(300)]
    values = [record.value for record in made]
    assert None in values
    assert b"" in values
    sizes = {len(value) for value in values if value is not None}
    most = max_input_bytes(registration_bytes) - ROOM_BYTES
    assert registration_bytes - ROOM_BYTES in sizes, "as large as can be registered"
    assert any(registration_bytes < size <= most for size in sizes), "too large for that"


@pytest.mark.parametrize("kind", [*MEAN_BYTES, "huge", "bulky"])
def test_what_a_kind_takes_on_the_average_is_known(kind: str) -> None:
    make = mixture([(kind, 1)], 150_000)
    made = [make(5, index) for index in range(400)]
    sizes = [
        sum(len(part or b"") for part in (record.key, record.value, *(value for _, value in record.headers or ())))
        for record in made
    ]
    seen, said = sum(sizes) / len(sizes), mean_bytes([(kind, 1)], 150_000)
    assert kind == "too_large" or 0.75 * seen <= said <= 3 * seen


@given(SEEDS)
def test_the_downstream_is_so_quick_that_what_may_be_in_hand_is_enough(seed: int) -> None:
    schedule = schedule_of(seed)
    load, settings = schedule.load, schedule.settings
    fitting = settings.look_ahead_bytes / mean_bytes(load.shares, settings.registration_bytes)
    at_once = min(settings.max_in_flight, fitting) * settings.processors
    latencies = Behaviour.read(schedule.mood.mixture, "").latencies
    longest_s = settings.handler_timeout_s * settings.max_attempts
    seconds = [latencies.at(turn) for turn in range(1, latencies.period + 1)]
    mean_s = sum(min((each.least_s + each.most_s) / 2, longest_s) for each in seconds) / len(seconds)
    assert mean_s * load.rate_per_s <= at_once


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


def _leaves_something(fault: PlannedFault) -> bool:
    return _kind(fault.target) == "processor" or (fault.name, fault.target) == ("kill", "group")


def _kind(target: str) -> str:
    return target.partition("-")[0]
