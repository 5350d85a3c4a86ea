"""`waitreg replay` as a command: the recipe with `waitreg rewind`, a crash, and what it refuses."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.integration.processor.calls import HANDLERS, Calls
from tests.integration.processor.scenario import Counts, ScenarioFactory, numbers
from tests.support.command import run_waitreg
from tests.support.committed_offsets import commit_as_operator
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata

ACCEPTS = "tests.integration.processor.scenario:accepts"


@pytest.mark.guarantee("P1.33")
def test_a_group_goes_to_the_latest_and_a_replay_works_off_the_gap(
    processor_scenario: ScenarioFactory, tmp_path: Path
) -> None:
    counts = Counts()
    at = processor_scenario(counts, 2)
    at.produce_to_each(5)
    at.run_once()
    at.produce_to_each(30)
    moved = run_waitreg(tmp_path, "rewind", "--to-latest", settings=at.settings)
    assert moved.code == 0, moved.errors
    printed = re.search(r"^  (waitreg replay .*)$", moved.output, re.MULTILINE)
    assert printed is not None
    group = at.start().wait_joined()
    at.produce_to_each(5)
    wait_until(lambda: group.done == 10, what="the group's new records")
    assert sum(counts.calls.values()) == 20
    by_another_process = at.changed("processor", handler=ACCEPTS)
    ended = run_waitreg(tmp_path, *shlex.split(printed[1])[1:], settings=by_another_process.settings)
    assert ended.code == 0, ended.errors
    assert ended.output == "settled 60 records: 60 done\n"
    group.stop()
    assert at.committed() == [40, 40]
    assert sum(counts.calls.values()) == 20, "the gap was the replay's alone"


@pytest.mark.guarantee("P1.34")
def test_a_killed_replay_is_run_again_and_every_record_is_handled(
    processor_scenario: ScenarioFactory, calls: Calls, tmp_path: Path
) -> None:
    at = processor_scenario(f"{HANDLERS}:dies_of_poison", 1)
    at.produce([*numbers(5), b"poison", *numbers(5)])
    command = ("replay", f"{at.topic}:0:0-11")
    assert run_waitreg(tmp_path, *command, settings=at.settings, variables=calls.environment).code == 9
    handler = f"{HANDLERS}:takes_a_while"
    fixed = at.changed("processor", handler=handler)
    ended = run_waitreg(tmp_path, *command, settings=fixed.settings, variables=calls.environment)
    assert ended.code == 0, ended.errors
    assert set(calls.offsets()) == set(range(11))
    assert at.committed() == [-1]


def test_a_replay_between_times_handles_each_record_of_them_in_any_order(
    processor_scenario: ScenarioFactory, calls: Calls, tmp_path: Path
) -> None:
    at = processor_scenario(f"{HANDLERS}:takes_a_while", 4)
    begin_ms, later_ms = 1_700_000_000_000, 1_750_000_000_000
    ordered = [begin_ms + 1000 * n for n in range(10)]
    logs = [ordered, [later_ms, *ordered], [*ordered[5:], *ordered[:5], later_ms], [later_ms, *range(10)]]
    for partition, timestamps in enumerate(logs):
        at.produce([Outgoing(b"value", partition=partition, timestamp_ms=each) for each in timestamps])
    times = ("--from-time", "2023-11-14T22:13:22Z", "--to-time", "2023-11-14T22:13:27Z")
    ended = run_waitreg(tmp_path, "replay", *times, settings=at.settings, variables=calls.environment)
    assert ended.code == 0, ended.errors
    assert ended.output == "settled 15 records: 15 done\n"
    assert sorted(calls.offsets()) == sorted([*range(2, 7), *range(3, 8), *range(7, 10), *range(2)])
    assert "the group hasn't committed 41 offsets of the ranges, and handles their records too" in ended.errors
    assert at.committed() == [-1] * 4


@pytest.mark.guarantee("P1.43")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give ranges, or --from-time and --to-time, or both"),
        (["--from-time", "2026-11-27", "--to-time", "2026-11-27"], "isn't before --to-time 2026-11-27"),
        (["--from-time", "2026-11-27"], "give both --from-time and --to-time"),
        (["{topic}:0:0-4"], "the log of {topic}[0] has the offsets 0-3, the range is 0-4: give a range in the log"),
        (["other:0:0-4"], "topic other isn't in processor.topics"),
        (["{topic}:0:0-3"], 'Set processor.redeliver_to = "origin" for the replay'),
        (["{topic}:7:0-1"], "topic {topic} has 1 partitions; there is no partition 7"),
    ],
)
def test_what_a_replay_refuses(
    arguments: list[str], said: str, processor_scenario: ScenarioFactory, tmp_path: Path
) -> None:
    at = processor_scenario(ACCEPTS, 1)
    at.produce(numbers(3))
    origin = CommitMetadata(TopicIdentity("wait", "id", 1), redeliver_to="origin").encode(3)
    commit_as_operator(at.topics.bootstrap, at.group, [TopicPartition(at.topic, 0, 3, metadata=origin)])
    ended = run_waitreg(
        tmp_path, "replay", *(each.replace("{topic}", at.topic) for each in arguments), settings=at.settings
    )
    assert ended.code == 2
    assert said.replace("{topic}", at.topic) in ended.errors
