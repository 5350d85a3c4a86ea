"""P1, P4, P7: rows of dead letters: of recreated topics, of those too large, and of IDs that are finished after all."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pytest

from sink.apply.applier import Writer
from sink.apply.dead_letter_writer import DeadLetterWriter
from sink.apply.wait_writer import WaitWriter
from sink.progress import Connection, read_progress
from sink.read.start_positions import dead_letter_start
from tests.conftest import SettingsFactory
from tests.integration.sink.applying import ORIGINAL, PARTITIONS, HandFed, letter, now_ms
from tests.integration.sink.conftest import SinkScenarioFactory
from tests.integration.sink.wait_topic import ENCODER, new_id
from tests.support.database import Database
from tests.support.kafka_io import Outgoing, produce
from tests.support.waiting import wait_until
from tests.unit.sink.batches import Headers, Row, batch_of
from wait_registry.kafka.clients import admin
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.topics import kept_topic_name
from wait_registry.settings.tree import Settings
from wait_registry.telemetry import metrics


@pytest.mark.guarantee("P1.13")
def test_letters_of_a_recreated_topic_are_next_to_the_old_ones(prepared: SettingsFactory, database: Database) -> None:
    settings = prepared({"dead_letter.partitions": PARTITIONS})
    topic, late = settings.dead_letter.topic, new_id()
    with closing(HandFed(settings, topic, dead_letters=True)) as old:
        old.feed([letter(topic, 0, b"old 0", late), letter(topic, 1, b"old 1"), letter(topic, 3, b"old 3")])
        recorded, _ = read_progress(old.connection, topic)
        assert recorded is not None
        start = dead_letter_start(old.connection, admin(settings.kafka), topic)
        assert {position.next_offset for position in start.positions.values()} == {0}

    def shown() -> Mapping[tuple[str, int], bytes]:
        rows = database.rows(settings, 'select topic, "offset", body from dead_letter')
        return {(topic, offset): body for topic, offset, body in rows}

    kept = kept_topic_name(topic, recorded.topic_id)
    of_the_old = {(kept, 0): b"old 0", (kept, 1): b"old 1", (kept, 3): b"old 3"}
    with closing(HandFed(settings, topic, dead_letters=True)) as new:
        new.feed([letter(topic, 0, b"new 0"), letter(topic, 1, b"new 1")])
        assert shown() == {**of_the_old, (topic, 0): b"new 0", (topic, 1): b"new 1"}
        dead_letter_start(new.connection, admin(settings.kafka), topic)
        assert shown() == {**of_the_old, (topic, 0): b"new 0", (topic, 1): b"new 1"}, "it is the same topic now"
    with closing(HandFed(settings)) as waits:
        waits.feed([Row(late.encode(), None, 0, 2, now_ms(), tuple(tombstone_headers(Outcome.DONE)))])
    marked = database.rows(settings, 'select topic, "offset" from dead_letter where finished_late')
    assert marked == [(kept, 0)], "what is finished late is marked there too"


MIB = 1024 * 1024


@pytest.mark.guarantee("P7.9")
@pytest.mark.fault("F10")
def test_of_a_letter_too_large_for_the_table_place_and_size_are_kept(sink_scenario: SinkScenarioFactory) -> None:
    at = sink_scenario({"dead_letter.partitions": 1})
    large = [
        Outgoing(bytes(34 * MIB), b"large", (("name", b"value"),)),
        Outgoing(b"value", bytes(34 * MIB)),
        Outgoing(b"value", b"key", (("name", bytes(34 * MIB)),)),
    ]
    topic = at.settings.dead_letter.topic
    produce(at.topics.bootstrap, topic, [b"before", *large, Outgoing(None, b"null"), b"after"], compression="lz4")
    at.drain()
    assert at.rows('select "offset", key, body from dead_letter order by 1') == [
        (0, None, b"before"),
        (4, b"null", None),
        (5, None, b"after"),
    ]
    kept = at.rows(
        "select \"offset\", key, headers, body, substring(error from 'of (.*) bytes, more than the table takes') "
        "from quarantine where topic = %s order by 1",
        topic,
    )
    sizes = [34 * MIB + len("largenamevalue"), 34 * MIB + len("value"), 34 * MIB + len("valuekeyname")]
    assert kept == [(offset, None, [], None, str(size)) for offset, size in enumerate(sizes, start=1)]


def test_letters_deleted_unread_are_logged_once_and_counted(
    sink_scenario: SinkScenarioFactory, caplog: pytest.LogCaptureFixture
) -> None:
    at = sink_scenario({"dead_letter.partitions": 1})
    topic = at.settings.dead_letter.topic

    def shown() -> list[int]:
        return [offset for (offset,) in at.rows('select "offset" from dead_letter order by 1')]

    at.topics.produce(topic, [b"0"])
    sink = at.start().wait_ready()
    wait_until(lambda: shown() == [0], what="the first letter")
    caplog.clear()
    with at.database.connect(at.settings) as other, other.transaction():
        other.execute("lock table dead_letter in share mode")
        at.topics.produce(topic, [b"1"])
        blocked = "select pid from pg_locks where relation = 'dead_letter'::regclass and not granted"
        wait_until(lambda: at.rows(blocked), what="a batch that waits for the lock")
        at.topics.produce(topic, [b"%d" % number for number in range(2, 10)])
        at.topics.delete_before(topic, {0: 7})
    wait_until(lambda: shown() == [0, 1, 7, 8, 9], what="the letters that were not deleted")
    [said] = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "the position 2 is outside of the log (7 to 10)" in said
    counted = sink.service.telemetry.registry.prometheus
    assert counted.get_sample_value(metrics.SINK_PASSED.name, {"topic": topic}) == 5
    assert counted.get_sample_value(metrics.SINK_RESTARTS.name, {"stream": "dead_letter", "cause": "spark"}) == 0


@dataclass
class Story:
    """The records of one id, with offsets in the order in which they are asked for."""

    wait_id: str
    at: int = 0

    def wait(self, expires_in_ms: int = -60_000) -> Row:
        headers = ENCODER.headers(ORIGINAL, self.wait_id, now_ms() + expires_in_ms)
        return self._row(b"body", tuple(headers))

    def tombstone(self, outcome: Outcome) -> Row:
        return self._row(None, tuple(tombstone_headers(outcome)))

    def dead_letter(self, reason: Reason, registered: int = 1) -> Row:
        self.at += 1
        return letter("dlq", self.at, b"body", self.wait_id, reason, registered)

    def _row(self, value: bytes | None, headers: Headers) -> Row:
        self.at += 1
        return Row(self.wait_id.encode(), value, 0, self.at, now_ms(), headers)


@dataclass
class Streams:
    """The wait topic and a dead letter topic of one schema, fed by hand."""

    settings: Settings
    database: Database
    waits: HandFed
    letters: HandFed

    def marked(self, reason: str = "expired") -> list[tuple[bool, str | None]]:
        """Return what the dead letters of a reason show."""
        query = "select finished_late, finished_outcome from dead_letter where reason = %s"
        return self.database.rows(self.settings, query, reason)


@pytest.fixture
def streams(prepared: SettingsFactory, database: Database) -> Iterator[Streams]:
    ours = prepared()
    with closing(HandFed(ours)) as waits, closing(HandFed(ours, "dlq", dead_letters=True)) as letters:
        yield Streams(ours, database, waits, letters)


@pytest.mark.guarantee("P4.13")
@pytest.mark.parametrize("order", list(itertools.permutations([Outcome.EXPIRED, Outcome.DONE])))
def test_outcome_and_expiry_of_a_registration_in_any_order(streams: Streams, order: tuple[Outcome, Outcome]) -> None:
    expected, story = 0, Story("")
    # Every way to cut three records into batches, as batch numbers.
    for batches in ((0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 2)):
        for letter_comes_before in range(max(batches) + 2):
            story.wait_id = new_id()
            rows = [story.wait(), *(story.tombstone(outcome) for outcome in order)]
            letter = story.dead_letter(Reason.EXPIRED)
            for number in range(max(batches) + 2):
                if number == letter_comes_before:
                    streams.letters.feed([letter])
                streams.waits.feed([row for row, batch in zip(rows, batches, strict=True) if batch == number])
            expected += 1
    assert streams.marked() == [(True, "done")] * expected


def test_an_outcome_after_a_renewal_marks_the_expired_dead_letter(streams: Streams) -> None:
    story = Story(new_id())
    streams.waits.feed([story.wait(), story.tombstone(Outcome.EXPIRED)])
    streams.letters.feed([story.dead_letter(Reason.EXPIRED)])
    streams.waits.feed([story.wait(600_000)])
    assert streams.marked() == [(False, None)]
    streams.waits.feed([story.tombstone(Outcome.DISCARDED)])
    assert streams.marked() == [(True, "discarded")]


@pytest.mark.parametrize("reasons", [[Reason.FAILED, Reason.EXPIRED], [Reason.EXPIRED, Reason.FAILED]])
@pytest.mark.parametrize("together", [True, False])
def test_what_failed_as_well_is_not_finished(streams: Streams, reasons: list[Reason], together: bool) -> None:
    story = Story(new_id())
    rows = [story.dead_letter(reason) for reason in reasons]
    for batch in [rows] if together else [[row] for row in rows]:
        streams.letters.feed(batch)
    assert streams.marked() == [(False, "dead_lettered")]
    assert streams.marked("failed") == [(False, None)]


@pytest.mark.parametrize("letters_first", [True, False])
def test_an_outcome_of_an_earlier_pass_marks_nothing(streams: Streams, letters_first: bool) -> None:
    """After a rewind, the same delivery is registered again, and expires."""
    story = Story(new_id())
    passes = [story.wait(), story.tombstone(Outcome.DONE), story.wait(), story.tombstone(Outcome.EXPIRED)]
    letters = [story.dead_letter(Reason.FAILED), story.dead_letter(Reason.EXPIRED, registered=3)]
    feeds: list[tuple[HandFed, list[Row]]] = [(streams.waits, passes), (streams.letters, letters)]
    for stream, rows in reversed(feeds) if letters_first else feeds:
        stream.feed(rows)
    assert streams.marked() == [(False, None)]


def test_a_registration_that_only_expired_is_not_marked_nor_is_another_ids(streams: Streams) -> None:
    expired, done = Story(new_id()), Story(new_id(), at=100)
    streams.letters.feed([expired.dead_letter(Reason.EXPIRED)])
    streams.waits.feed([expired.wait(), expired.tombstone(Outcome.EXPIRED)])
    streams.waits.feed([done.wait(600_000), done.tombstone(Outcome.DONE)])
    streams.waits.feed([expired.tombstone(Outcome.EXPIRED)])
    assert streams.marked() == [(False, None)]


def test_a_tombstone_whose_wait_may_be_compacted_is_not_late(prepared: SettingsFactory, database: Database) -> None:
    ours = prepared()
    with closing(HandFed(ours, whole_from=50)) as waits:
        compacted, known = Story(new_id(), at=10), Story(new_id(), at=60)
        waits.feed([compacted.tombstone(Outcome.DONE)])
        waits.feed([known.tombstone(Outcome.DONE)])
    assert database.rows(ours, "select wait_expiration_uuid from late_outcome") == [(known.wait_id,)]


@pytest.mark.guarantee("P4.13")
@pytest.mark.parametrize("first", ["waits", "letters"])
def test_two_transactions_with_the_halves_at_the_same_time_see_each_other(streams: Streams, first: str) -> None:
    story = Story(new_id())
    streams.waits.feed([story.wait(), story.tombstone(Outcome.EXPIRED)])
    late, letter = batch_of([story.tombstone(Outcome.DONE)]), batch_of([story.dead_letter(Reason.EXPIRED)])
    steps: list[tuple[Connection, Writer, pa.Table]] = [
        (streams.waits.connection, WaitWriter("wait"), late),
        (streams.letters.connection, DeadLetterWriter(), letter),
    ]
    (leading, leader, its_batch), (following, follower, other_batch) = steps if first == "waits" else steps[::-1]

    def follow() -> None:
        with following.transaction():
            follower.write(following, other_batch, {})

    waiting = "select 1 from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
    with leading.transaction():
        leader.write(leading, its_batch, {})
        thread = threading.Thread(target=follow)
        thread.start()
        # The second one has written its half and waits for the first one's end.
        pid = following.info.backend_pid
        wait_until(lambda: streams.database.rows(streams.settings, waiting, pid), 60, "the second transaction's wait")
    thread.join()
    assert streams.marked() == [(True, "done")]
