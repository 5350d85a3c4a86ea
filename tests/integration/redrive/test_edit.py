"""A dead letter's record is edited: it is sent as given, byte for byte and once, with the lineage of its delivery."""

from __future__ import annotations

import pytest

from tests.conftest import SettingsFactory
from tests.integration.processor.running import Processors
from tests.integration.queries.test_deliveries_of_one_record import deliveries
from tests.integration.redrive.dying import killed
from tests.integration.redrive.scenario import Scenario
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.dead_letters.dead_letter import DeadLetter, find
from wait_registry.errors import PermanentError, TransientError
from wait_registry.handler import Record
from wait_registry.records.headers import Headers
from wait_registry.records.lineage import split_lineage
from wait_registry.records.operation import Mark, Replacement, Requested, State
from wait_registry.records.wait_id import wait_id
from waitreg.redrive.edit import review
from waitreg.redrive.request import open_job

VALUES = {
    "crlf": b"a\r\nb\r\n",
    "bom": b"\xef\xbb\xbf{}",
    "nul": b"a\0b",
    "no bytes": b"",
    "null": None,
    "large integer": b'{"amount": 123456789012345678901234567890, "rate": 1.10}',
    "no text": b"\xff\xfe\x80",
    "line ends first": b"\n\nx",
    "1.2 MiB": bytes(range(256)) * 4915,
}
NEXT = "018bcfe5-6800-8000-8000-000000000001"
EDITED = ("WAITREG_EDITED", b"job-1")


def dead_letter(at: Scenario) -> DeadLetter:
    """Return the only dead letter, as the tables have it."""
    with at.database.connect(at.settings) as connection:
        (letter,) = find(connection, str(at.place()))
    return letter


def edit(at: Scenario, **changes: object) -> Replacement:
    """Return the edit of the only dead letter."""
    content = dead_letter(at).content
    return review(content, content._replace(**changes)).replacement  # type: ignore[arg-type]


def request_of(at: Scenario, replacement: Replacement, job: str = "job-1") -> Requested:
    """Return the job that sends an edit of the only dead letter."""
    return at.request(f"place={at.place()}", replacement=replacement, job=job).job


@pytest.mark.guarantee("R1.16")
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_an_edited_record_is_sent_as_given(at: Scenario, value: bytes | None) -> None:
    at.show_dead_letters(1)
    headers: Headers = (("raw", b"\r\n\0"), ("tenant", b"red"), ("none", None), ("tenant", b""))
    job = request_of(at, edit(at, key=b"\0new\r\n", value=value, headers=headers))
    assert job.expected == {"redriven": 1}
    ended = at.execute(job)
    assert (ended.state, dict(ended.counts)) == (State.FINISHED, {"redriven": 1})
    (sent,) = at.sent()
    assert (sent.key, sent.value) == (b"\0new\r\n", value)
    original, lineage, _ = split_lineage(sent.headers)
    assert original == (*headers, EDITED)
    of_first = at.lineage(0)
    assert lineage is not None and (lineage.delivery, lineage.group) == (2, at.group)
    assert (lineage.original_topic, lineage.original_offset, lineage.wait_id) == (at.input, 0, of_first.wait_id)
    (mark,) = (event for event in at.events() if isinstance(event, Mark))
    assert mark.edited and mark.target == sent.place
    assert mark.next_wait_id == wait_id(at.cluster, sent.place, at.group, sent.timestamp_ms)


@pytest.mark.guarantee("R1.16")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["produce", "commit"])
@pytest.mark.parametrize("read", [False, True], ids=["from-topic", "from-tables"])
def test_after_a_kill_the_edit_is_continued(at: Scenario, step: str, when: str, read: bool) -> None:
    at.show_dead_letters(1)
    killed(at.settings, request_of(at, edit(at, value=b"\xffgood\r\n")), step, when)
    if read:
        at.read_operations()
    job = open_job(at.settings, "job-1").requested
    at.execute(job)
    (sent,) = at.sent()
    assert sent.value == b"\xffgood\r\n"
    at.read_operations()
    assert at.rows("select state, counts from operation") == [("finished", {"redriven": 1})]
    assert at.rows("select edited, job from dead_letter_mark") == [(True, "job-1")]


@pytest.mark.guarantee("R1.16")
def test_of_two_edits_one_is_sent(at: Scenario) -> None:
    at.show_dead_letters(1)
    first, second = (request_of(at, edit(at, value=job.encode()), job) for job in ("job-1", "job-2"))
    at.execute(first)
    assert dict(at.execute(second).counts) == {"already_redriven": 1}
    assert [record.value for record in at.sent()] == [b"job-1"]


@pytest.mark.guarantee("R1.16")
@pytest.mark.parametrize("column", ["key", "body", "headers"])
def test_another_record_than_the_edited_one_is_not_replaced(at: Scenario, column: str) -> None:
    at.show_dead_letters(1)
    job = request_of(at, edit(at, value=b"good"))
    other = "'[]'::jsonb" if column == "headers" else "'\\x00'"
    at.database.execute(at.settings, f"update dead_letter set {column} = {other}")
    assert request_of(at, job.replacement or edit(at), "job-2").expected == {"changed": 1}
    assert dict(at.execute(job).counts) == {"changed": 1}
    assert at.sent() == []


def test_what_the_topic_does_not_take_is_not_sent(at: Scenario) -> None:
    at.show_dead_letters(1)
    largest = at.settings.wait.max_message_bytes * 2
    assert request_of(at, edit(at, value=bytes(largest))).expected == {"too_large": 1}
    assert at.events() == []


def test_an_edited_record_that_fails_again_is_edited_again(at: Scenario) -> None:
    at.show_dead_letters(1)
    at.execute(request_of(at, edit(at, value=b"bad")))
    at.read_operations()
    row = "select event from record_event where event like 'redriven%'"
    assert at.rows(row) == [("redriven, edited",)]
    at.database.execute(
        at.settings, 'update dead_letter set headers = headers || \'[["WAITREG_EDITED", "am9iLTE="]]\'::jsonb'
    )
    at.database.execute(at.settings, "update dead_letter set wait_expiration_uuid = %s, delivery = 2", [NEXT])
    assert dead_letter(at).content.headers[-1] == EDITED
    at.execute(request_of(at, edit(at, value=b"good"), "job-2"))
    _, last = at.sent()
    original, lineage, _ = split_lineage(last.headers)
    assert last.value == b"good" and lineage is not None and lineage.delivery == 3
    assert [value for name, value in original if name == "WAITREG_EDITED"] == [b"job-2"]


@pytest.mark.guarantee("P1.27")
def test_an_edited_record_has_a_key_of_its_own_in_each_delivery(
    prepared: SettingsFactory, topics: Topics, database: Database, processors: Processors
) -> None:
    seen: list[Record] = []

    async def handle(record: Record) -> None:
        seen.append(record)
        if record.value == b"bad":
            raise PermanentError("this value never works")
        raise PermanentError("never") if record.delivery == 3 else TransientError("not yet")

    quick = {"processor.retry.delays": ("1s",), "processor.max_attempts": 1, "processor.registration": "eager"}
    at = Scenario(prepared({**quick, "processor.handler": processors.handler(handle)}), topics, database)
    at.topics.produce(at.input, [Outgoing(b"bad", b"key", (("WAITREG_EDITED", b"by its producer"),))])
    running = processors.start(at.settings)
    wait_until(lambda: running.settled == {"dead_lettered": 1}, what="the dead letter")
    at.read()
    at.execute(request_of(at, edit(at, value=b"good")))
    wait_until(lambda: running.settled == {"dead_lettered": 2, "retried": 1}, what="the third delivery")
    running.stop()
    first, *edited = seen
    key = wait_id(at.cluster, (first.topic, first.partition, first.offset), at.group, first.timestamp, b"job-1")
    assert first.idempotency_key == first.wait_id
    assert [record.idempotency_key for record in edited] == [key, key]
    waits = [entry for entry in topics.read(at.settings.wait.topic) if entry.value is not None]
    carried = [dict(entry.headers).get("WAIT_IDEMPOTENCY_KEY") for entry in waits]
    assert sorted(carried, key=bool) == [None, key.encode(), key.encode()]
    at.read()
    rows = deliveries(database, at.settings, id=edited[1].wait_id)
    assert [(row["delivery"], row["event"], row["wait_id"], row["idempotency_key"]) for row in rows] == [
        (2, "handed on", None, key),
        (3, "dead letter: failed", edited[1].wait_id, key),
    ]
    places = {"topic": at.input, "partition": first.partition, "offset": first.offset}
    assert {row["idempotency_key"] for row in deliveries(database, at.settings, **places)} == {first.wait_id, key}
