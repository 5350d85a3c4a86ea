"""R1.19: `waitreg dlq purge --delete-records` deletes old records, and no open dead letter."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest

from sink.rebuild.tables import rebuild
from tests.integration.redrive.conftest import Type
from tests.integration.redrive.scenario import Scenario
from tests.integration.redrive.test_rebuild import drain, tables
from tests.integration.sink.applying import now_ms
from tests.integration.sink.conftest import StartSink
from tests.support.waiting import wait_until
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.fenced_producer import FencedProducer, ToSend
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.records.operation import DeletionRequested, Event, Kind, Place, RecordsDeleted
from waitreg.redrive import records_deletion
from waitreg.redrive.prefix_cut import Obstacle
from waitreg.redrive.records_deletion import deletion
from waitreg.redrive.request import Asker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = range(2)
ANNA = Asker("anna", authenticated=False, via="command")
# All records are older.
LATE = datetime(2999, 1, 1, tzinfo=UTC)
EVERYTHING = ("--before", LATE.isoformat(), "--delete-records")


def first(at: Scenario) -> dict[int, int]:
    """Return the first offset that the broker has, by partition."""
    return earliest_offsets(at.admin, at.settings.dead_letter.topic, NUMBERS)


def ends(at: Scenario) -> dict[int, int]:
    """Return the offset after the last record, by partition."""
    return end_offsets(at.admin, at.settings.dead_letter.topic, NUMBERS)


def archived(at: Scenario, count: int) -> None:
    """Write dead letters, and archive all that there are."""
    at.show_dead_letters(count)
    at.execute(at.request(kind=Kind.ARCHIVE, job="archiving").job)
    at.read_operations()


def restore(at: Scenario, place: Place, job: str = "restoring") -> None:
    """Make an archived dead letter an open one, which the tables don't show yet."""
    assert at.execute(at.request(f"place={place}", kind=Kind.RESTORE, job=job).job).counts["restored"] == 1


def deletions(at: Scenario) -> list[Event]:
    """Return what the operations topic has of deletions."""
    return [event for event in at.events() if isinstance(event, DeletionRequested | RecordsDeleted)]


def test_what_is_older_is_deleted_and_nothing_else(at: Scenario, typed: Type) -> None:
    topic = at.settings.dead_letter.topic
    archived(at, 6)
    old = ends(at)
    written_ms = max(record.timestamp_ms for record in at.topics.read(topic))
    wait_until(lambda: now_ms() > written_ms, what="another millisecond")
    at.show_dead_letters(5, first=6)
    time_ms = min(record.timestamp_ms for record in at.topics.read(topic) if record.offset >= old[record.partition])
    time = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    asked = ("purge", topic, "--before", time, "--delete-records")

    status, printed = typed(*asked)
    assert status == 0, printed
    for number in NUMBERS:
        assert f"partition {number}: begins at 0, cut before {old[number]}: {old[number]} offsets; " in printed
    assert "nothing was deleted: add --send" in printed
    assert f"a group that reads {topic} as an input loses what it hasn't read before the cut" in printed
    assert (first(at), deletions(at)) == ({0: 0, 1: 0}, [])

    status, printed = typed(*asked, "--send")
    assert (status, "--send needs --reason TEXT" in printed) == (2, True)
    status, printed = typed(*asked, "--reason", "ticket 17", "--send")
    assert status == 0, printed
    assert first(at) == old
    requested, answered = deletions(at)
    assert isinstance(requested, DeletionRequested) and isinstance(answered, RecordsDeleted)
    assert (requested.topic, requested.before, requested.reason) == (topic, old, "ticket 17")
    assert (answered.job, answered.first, answered.failed) == (requested.job, old, {})

    at.show_dead_letters(2, first=11)
    assert at.rows("select count(*) from dead_letter") == [(13,)]
    status, printed = typed("audit", "--job", requested.job, "--json")
    rows = {row["what"]: row for row in map(json.loads, printed.splitlines())}
    assert rows.keys() == {"deletion_requested", "records_deleted"}
    assert rows["deletion_requested"]["reason"].endswith(f"partition 1 before {old[1]}: ticket 17")
    assert rows["records_deleted"]["reason"].endswith(f"partition 1 begins at {old[1]}")
    status, printed = typed(*asked, "--reason", "again", "--send")
    assert (status, "there is nothing to delete" in printed, len(deletions(at))) == (0, True, 2)


@pytest.mark.guarantee("R1.19")
def test_nothing_of_a_partition_with_an_open_dead_letter_is_deleted(at: Scenario, typed: Type) -> None:
    archived(at, 6)
    place = at.place()
    restore(at, place)
    at.read()
    other = 1 - place.partition
    status, printed = typed("purge", place.topic, *EVERYTHING)
    assert (status, first(at)) == (1, {0: 0, 1: 0})
    status, printed = typed("purge", place.topic, *EVERYTHING, "--reason", "old", "--send")
    assert status == 1
    assert f"partition {place.partition}: nothing is deleted because of {place}: it is an open dead letter" in printed
    assert first(at) == {place.partition: 0, other: ends(at)[other]}
    (requested, _) = deletions(at)
    assert isinstance(requested, DeletionRequested) and list(requested.before) == [other]


@pytest.mark.guarantee("R1.19")
def test_marks_that_the_tables_do_not_show_yet_count(at: Scenario, typed: Type) -> None:
    archived(at, 6)
    place = at.place()
    restore(at, place)
    asked = ("purge", place.topic, *EVERYTHING, "--reason", "old", "--send")
    status, printed = typed(*asked)
    assert (status, f"{place}: it is an open dead letter" in printed) == (1, True)
    assert first(at)[place.partition] == 0
    at.execute(at.request(f"place={place}", kind=Kind.ARCHIVE, job="archiving again").job)
    status, printed = typed(*asked)
    assert (status, first(at)) == (0, ends(at)), printed


@pytest.mark.guarantee("R1.19")
def test_a_dead_letter_restored_after_the_look_is_not_deleted(at: Scenario) -> None:
    archived(at, 6)
    place = at.place()
    with deletion(at.settings, place.topic, LATE) as found:
        assert all(part.is_deletable for part in found.parts)
        restore(at, place)
        outcome = found.run(ANNA, "old")
    assert outcome.answer.failed == {place.partition: f"{place.offset}: {Obstacle.OPEN}"}
    assert first(at)[place.partition] == 0


def test_what_failed_again_after_it_was_archived_is_not_deleted(at: Scenario) -> None:
    archived(at, 6)
    before = ends(at)
    at.show_dead_letters(6)
    with deletion(at.settings, at.settings.dead_letter.topic, LATE) as found:
        obstacles = {part.partition: part.obstacle for part in found.parts if part.prefix.offsets}
    assert obstacles == {number: (before[number], Obstacle.OPEN) for number in obstacles}


def test_a_restore_during_the_deletion_is_reported(at: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    archived(at, 6)
    place = at.place()
    original = records_deletion.delete_before

    def late(client: Admin, topic: str, partition: int, before: int) -> int:
        if partition == place.partition:
            restore(at, place)
        return original(client, topic, partition, before)

    monkeypatch.setattr(records_deletion, "delete_before", late)
    with deletion(at.settings, place.topic, LATE) as found:
        assert found.run(ANNA, "old").open_again == [place]
    assert first(at) == ends(at)
    at.read()
    redriven = at.execute(at.request(f"place={place}", job="redriving").job)
    assert (redriven.counts["redriven"], len(at.sent())) == (1, 1)


@pytest.mark.guarantee("R1.19")
def test_what_the_tables_have_not_read_holds_the_cut_back(at: Scenario, typed: Type) -> None:
    archived(at, 6)
    read = ends(at)
    at.dead_letters(6, first=6)
    topic = at.settings.dead_letter.topic
    status, printed = typed("purge", topic, *EVERYTHING, "--reason", "old", "--send")
    assert (status, first(at)) == (0, read), printed
    assert "the tables have read the topic up to there only" in printed


@pytest.mark.guarantee("R1.19")
def test_a_record_that_the_tables_do_not_have_forbids_the_deletion(at: Scenario, typed: Type) -> None:
    archived(at, 6)
    topic, partition, offset = max(Place(*record.place) for record in at.topics.read(at.settings.dead_letter.topic))
    with at.database.connect(at.settings) as connection:
        query = b'delete from dead_letter where partition = %s and "offset" = %s'
        connection.execute(query, [partition, offset])
    status, printed = typed("purge", topic, *EVERYTHING, "--reason", "old", "--send")
    assert (status, f"{topic}:{partition}:{offset}: the tables have no dead letter of it" in printed) == (1, True)
    assert first(at) == {partition: 0, 1 - partition: ends(at)[1 - partition]}


def test_a_record_of_another_client_counts_as_open(at: Scenario, typed: Type) -> None:
    (place,) = at.topics.produce(at.settings.dead_letter.topic, [b"of another client"])
    at.read()
    status, printed = typed("purge", at.settings.dead_letter.topic, *EVERYTHING)
    assert (status, f":{place[0]}:{place[1]}: it is an open dead letter" in printed) == (1, True), printed


def test_the_markers_of_transactions_are_no_unknown_records(at: Scenario, typed: Type) -> None:
    topic = at.settings.dead_letter.topic
    for records in at.dead_letters(1), at.dead_letters(1, first=1):
        with closing(FencedProducer(at.settings.kafka, f"{topic}.exporter", 10_000, queued=10)) as producer:
            producer.fence()
            (one,) = records
            sent = [ToSend(topic, number, one.key, one.value, list(one.headers)) for number in NUMBERS]
            producer.write([partial(list, sent)], {}, "exporting")
    at.topics.wait_settled(topic)
    at.read()
    at.execute(at.request(kind=Kind.ARCHIVE, job="archiving").job)
    status, printed = typed("purge", topic, *EVERYTHING, "--reason", "old", "--send")
    assert (status, first(at)) == (0, ends(at)), printed


def test_what_the_broker_refuses_is_in_the_answer(at: Scenario, typed: Type) -> None:
    archived(at, 3)
    topic = at.settings.dead_letter.topic
    at.topics.configure(topic, "cleanup.policy", "compact")
    status, printed = typed("purge", topic, *EVERYTHING, "--reason", "old", "--send")
    assert (status, "not deleted, as far as is known" in printed) == (1, True), printed
    answered = deletions(at)[1]
    assert isinstance(answered, RecordsDeleted) and "POLICY_VIOLATION" in str(answered.failed)
    at.read_operations()
    assert "POLICY_VIOLATION" in typed("audit", "--job", answered.job)[1]


def test_a_crash_leaves_a_request_without_an_answer(at: Scenario, typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    archived(at, 3)

    def dies(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(records_deletion, "delete_before", dies)
    with deletion(at.settings, at.settings.dead_letter.topic, LATE) as found, pytest.raises(KeyboardInterrupt):
        found.run(ANNA, "old")
    at.read_operations()
    printed = typed("audit", "--job", found.job, "--json")[1]
    assert [json.loads(line)["what"] for line in printed.splitlines()] == ["deletion_requested"]


def test_records_of_other_topics_are_not_deleted(at: Scenario, typed: Type) -> None:
    at.read()
    at.read_waits()
    own = at.settings
    for topic in (at.input, own.wait.topic, own.operations.topic, at.target, "no.such.topic"):
        status, printed = typed("purge", topic, *EVERYTHING, "--reason", "old", "--send")
        assert (status, f"{topic} is no dead letter topic" in printed) == (2, True), printed
    assert deletions(at) == []


def test_a_topic_that_was_recreated_or_never_read_is_refused(at: Scenario, typed: Type) -> None:
    topic = at.settings.dead_letter.topic
    at.read_operations()
    status, printed = typed("purge", topic, *EVERYTHING)
    assert (status, "the tables don't say how far they have read" in printed) == (2, True), printed
    archived(at, 2)
    at.topics.delete(topic)
    at.topics.create(topic, 2)
    status, printed = typed("purge", topic, *EVERYTHING, "--reason", "old", "--send")
    assert (status, re.search("was\\s+recreated", printed) is not None) == (2, True), printed
    assert deletions(at) == []


def test_group_and_delete_records_exclude_each_other(at: Scenario, typed: Type) -> None:
    status, printed = typed("purge", at.settings.dead_letter.topic, *EVERYTHING, "--group", at.group)
    assert (status, "leave --group out" in printed) == (2, True)


@pytest.mark.guarantee("R1.9")
def test_a_sink_reads_on_and_a_rebuild_makes_the_same(at: Scenario, start_sink: StartSink, spark: SparkSession) -> None:
    at.dead_letters(4)
    drain(at, start_sink)
    at.execute(at.request(kind=Kind.ARCHIVE, job="archiving").job)
    with deletion(at.settings, at.settings.dead_letter.topic, LATE) as found:
        assert found.run(ANNA, "old").answer.first == ends(at)
    at.dead_letters(3, first=4)
    drain(at, start_sink)
    exact = tables(at)
    assert [state for _, state, *_ in exact["dead_letter"]] == ["archived"] * 4 + ["open"] * 3
    assert rebuild(at.settings, spark, dry_run=True).changed == 0
    at.database.execute(at.settings, "delete from operator_event")
    rebuilt = rebuild(at.settings, spark).operations
    assert rebuilt is not None and rebuilt.events == len(exact["operator_event"]) > 2
    assert tables(at) == exact
