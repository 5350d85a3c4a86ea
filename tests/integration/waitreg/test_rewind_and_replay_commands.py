"""`waitreg rewind` and `waitreg replay` on a real broker: what they move, handle, print and refuse, and a crash."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.integration.doctor.findings import look
from tests.integration.processor.calls import HANDLERS, Calls
from tests.integration.processor.scenario import PROTOCOLS, Counts, ProcessorScenario, ScenarioFactory, numbers
from tests.support.command import Ended, run_waitreg
from tests.support.committed_offsets import commit_as_operator
from tests.support.kafka_io import Outgoing, group_member
from tests.support.waiting import wait_until
from wait_registry.errors import FencedError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.records.wait_record import RegistrationMode
from waitreg.rewind.offsets import commit
from waitreg.rewind.plan import Move

Rewind = Callable[..., Ended]
QUICK_SESSION = {"kafka.librdkafka": {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300}}
UNREACHABLE = {"WAITREG_POSTGRES__URL": "postgresql://127.0.0.1:1/none"}


@pytest.fixture
def rewind(tmp_path: Path) -> Rewind:
    """Run `waitreg rewind` with the settings of a scenario."""

    def run(at: ProcessorScenario, *arguments: str) -> Ended:
        return run_waitreg(tmp_path, "rewind", *arguments, settings=at.settings, variables=UNREACHABLE)

    return run


@pytest.mark.guarantee("P1.31")
@pytest.mark.parametrize("mode", list(RegistrationMode))
def test_a_registered_record_that_is_handled_again_is_settled(
    mode: RegistrationMode, processor_scenario: ScenarioFactory, calls: Calls, rewind: Rewind
) -> None:
    at = processor_scenario(f"{HANDLERS}:dies_of_poison", 1, QUICK_SESSION, commit_interval_s=60)
    at.produce([b"poison"])
    assert calls.start(at).wait() == 9
    assert at.committed() == [1]
    assert not at.by_offset()[0].resolved
    at.produce(numbers(5))
    accepting = "tests.integration.processor.scenario:accepts"
    after = at.changed("processor", handler=accepting, registration=mode)
    after.run_once()
    assert after.committed() == [6]
    assert not at.by_offset()[0].resolved, "it would expire"
    moved = rewind(after, "--to-earliest")
    assert moved.code == 0, moved.errors
    assert after.committed() == [0]
    after.run_once()
    assert after.committed() == [6]
    assert all(story.resolved for story in after.stories().values())
    assert after.by_offset()[0].outcomes == ["done"]


def test_a_dry_run_names_what_is_skipped_and_moves_nothing(processor_scenario: ScenarioFactory, rewind: Rewind) -> None:
    at = processor_scenario(partitions=2)
    at.produce([Outgoing(b"value", partition=number % 2) for number in range(6)])
    at.run_once()
    at.produce([Outgoing(b"value", partition=1)] * 4)
    shown = rewind(at, "--to-latest", "--dry-run")
    assert shown.code == 0, shown.errors
    assert [line.split() for line in shown.output.splitlines() if line.startswith(at.topic + " ")] == [
        [at.topic, "0", "3", "3", "0", "0"],
        [at.topic, "1", "3", "7", "0", "4"],
    ]
    assert f"  waitreg replay {at.topic}:1:3-7\n" in shown.output
    assert at.committed() == [3, 3]
    assert rewind(at, "--to-latest").code == 0
    assert at.committed() == [3, 7]
    assert at.run_once().done == 0


def test_after_a_move_to_a_time_the_rest_is_handled_again(processor_scenario: ScenarioFactory, rewind: Rewind) -> None:
    counts = Counts()
    at = processor_scenario(counts, 2)
    at.produce([Outgoing(b"value", partition=0, timestamp_ms=1_700_000_000_000 + 1000 * n) for n in range(10)])
    at.run_once()
    moved = rewind(at, "--to-time", "2023-11-14T22:13:26.500+00:00")
    assert moved.code == 0, moved.errors
    assert f"{at.topic}[0]: the record at 7 decides, of 2023-11-14T22:13:27.000Z.\n" in moved.output
    assert f"{at.topic}[1]: no record has this time or a later one, so it goes to the end.\n" in moved.output
    assert at.committed() == [7, 0]
    at.run_once()
    assert [counts.calls[0, offset] for offset in range(10)] == [1] * 7 + [2] * 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_partition_moves_to_an_offset(protocol: str, processor_scenario: ScenarioFactory, rewind: Rewind) -> None:
    at = processor_scenario(partitions=2, **PROTOCOLS[protocol])
    at.produce_to_each(5)
    at.run_once()
    assert rewind(at, "--to-offset", "2", "--topic", at.topic, "--partition", "1").code == 0
    assert at.committed() == [5, 2]
    outside = rewind(at, "--to-offset", "6")
    assert outside.code == 2
    assert f"offset 6 isn't in {at.topic}[0], whose log begins at 0 and ends at 5" in outside.errors
    assert at.committed() == [5, 2]
    assert at.run_once().done == 3


def test_a_new_group_begins_at_the_latest(processor_scenario: ScenarioFactory, rewind: Rewind) -> None:
    counts = Counts()
    at = processor_scenario(counts, 2)
    at.produce_to_each(5)
    moved = rewind(at, "--to-latest")
    assert moved.code == 0, moved.errors
    assert at.committed() == [5, 5]
    at.produce_to_each(1)
    at.run_once()
    assert counts.calls == {(0, 5): 1, (1, 5): 1}


@pytest.mark.guarantee("P1.32")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_a_member_is_refused(protocol: str, processor_scenario: ScenarioFactory, rewind: Rewind) -> None:
    at = processor_scenario(partitions=2)
    at.produce_to_each(5)
    with closing(group_member(at.topics.bootstrap, at.group, [at.topic], protocol)) as member:
        wait_until(lambda: member.poll(0.1) is None and member.assignment(), 60, "its partitions")
        refused = rewind(at, "--to-latest")
        assert refused.code == 3
        assert f"group {at.group} has 1 active member: {member.memberid()} at " in refused.errors
        assert f"with {at.topic}[0], {at.topic}[1]. Stop every processor of the group first" in refused.errors
        shown = rewind(at, "--to-latest", "--dry-run")
        assert shown.code == 0
        assert "The move itself would be refused now" in shown.output
        wait_topic = describe_wait_topic(admin(at.settings.kafka), at.settings.wait.topic, at.settings.wait.partitions)
        move = Move((at.topic, 0), None, 5, 0, range(5), 0, CommitMetadata(wait_topic))
        with pytest.raises(FencedError, match="has a member by now"):
            commit(at.settings.kafka, at.group, [move])
    assert at.committed() == [-1, -1]


@pytest.mark.guarantee("P8.6")
def test_doctors_fix_moves_partitions_outside_their_logs(processor_scenario: ScenarioFactory, rewind: Rewind) -> None:
    at = processor_scenario(partitions=4)
    at.produce([Outgoing(b"value", partition=number % 4) for number in range(12)])
    at.run_once()
    at.produce([Outgoing(b"value", partition=number % 4) for number in range(12)])
    at.topics.delete_before(at.topic, {1: 5, 2: 4})
    found = look(at.settings, "processor").one("group.offsets")
    assert f"aren't in the logs of {at.topic}[1-2]" in found.message
    command = re.search("`waitreg rewind (.*?)`", found.fix)
    assert command is not None
    moved = rewind(at, *command[1].split())
    assert moved.code == 0, moved.errors
    assert at.committed() == [3, 5, 4, 3]
    again = rewind(at, *command[1].split())
    nothing = f"Nothing to move: each committed offset of group {at.group} is in its log.\n"
    assert (again.code, again.output) == (0, nothing)


@pytest.mark.guarantee("P8.6")
def test_a_group_continues_after_its_input_was_recreated(processor_scenario: ScenarioFactory, rewind: Rewind) -> None:
    at = processor_scenario(partitions=1)
    of_the_old = CommitMetadata(
        describe_wait_topic(admin(at.settings.kafka), at.settings.wait.topic, at.settings.wait.partitions),
        "the-ID-of-a-deleted-one",
    ).encode(300)
    commit_as_operator(at.topics.bootstrap, at.group, [TopicPartition(at.topic, 0, 300, metadata=of_the_old)])
    at.produce(numbers(5))
    moved = rewind(at, "--to-earliest")
    assert moved.code == 0, moved.errors
    assert at.run_once().done == 5


ACCEPTS = "tests.integration.processor.scenario:accepts"


@pytest.mark.guarantee("P1.33")
def test_a_group_at_the_latest_leaves_the_gap_to_a_replay(processor_scenario: ScenarioFactory, tmp_path: Path) -> None:
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
def test_a_killed_replay_is_run_again(processor_scenario: ScenarioFactory, calls: Calls, tmp_path: Path) -> None:
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


def test_a_replay_takes_all_between_times(processor_scenario: ScenarioFactory, calls: Calls, tmp_path: Path) -> None:
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
    given = [each.replace("{topic}", at.topic) for each in arguments]
    ended = run_waitreg(tmp_path, "replay", *given, settings=at.settings)
    assert ended.code == 2
    assert said.replace("{topic}", at.topic) in ended.errors
