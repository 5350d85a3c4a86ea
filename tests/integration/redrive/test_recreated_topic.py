"""Dead letters of a deleted topic, what a redrive to the input keeps, and what lists show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink.read.start_positions import dead_letter_start, operations_start
from tests.integration.redrive.conftest import Type
from tests.integration.redrive.handling import Handling
from tests.integration.redrive.scenario import Scenario
from tests.integration.redrive.test_canary import executor, marked, pauses, sink_of
from tests.integration.sink.applying import now_ms
from tests.support.console import ask, running_console
from tests.support.kafka_io import Outgoing
from tests.support.settings import changed
from tests.support.waiting import wait_until
from tests.unit.redrive.test_job_decision import COVERED
from wait_registry.errors import ConfigurationError
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.operation import Kind, Place, State
from wait_registry.settings.processor import RedeliverTo
from waitreg.redrive.job_decision import Category
from waitreg.redrive.target import ORIGIN


@pytest.fixture
def kept(at: Scenario) -> list[Place]:
    """The places of five dead letters whose topic was recreated, the oldest first."""
    at.show_dead_letters(5)
    recreate(at)
    rows = at.database.rows(at.settings, 'select topic, partition, "offset" from dead_letter order by original_offset')
    places = [Place(*row) for row in rows]
    assert all(place.topic.startswith(f"{at.settings.dead_letter.topic}@") for place in places)
    return places


def recreate(at: Scenario) -> None:
    """Delete the dead letter topic, and create it again; the sink notices it."""
    at.topics.delete(at.settings.dead_letter.topic)
    at.topics.create_own(at.settings)
    with at.database.connect(at.settings) as connection:
        dead_letter_start(connection, at.admin, at.settings.dead_letter.topic)


STATES = "select topic like '%@%', state from dead_letter order by 1 desc, 2, partition, \"offset\""
APART = [(True, "archived")] * 3 + [(False, "open")] * 3
AGAIN = "truncate dead_letter_mark; update dead_letter set state = 'open'; delete from sink_progress where topic = '{}'"


@pytest.mark.guarantee("R1.6")
def test_what_fails_at_the_places_of_a_deleted_topic_is_open(at: Scenario) -> None:
    at.show_dead_letters(3)
    at.execute(at.request(kind=Kind.ARCHIVE).job)
    recreate(at)
    at.show_dead_letters(3)  # the same deliveries: the group was rewound, say
    assert at.rows(STATES) == APART
    at.database.execute(at.settings, AGAIN.format(at.settings.operations.topic))
    at.read_operations()
    assert at.rows(STATES) == APART, "as a reading of all marks says"
    at.execute(at.request("state=open", job="again", kind=Kind.ARCHIVE, limit=1).job)
    assert at.request(job="job-2").job.expected == {"already_archived": 4, "redriven": 2}


def test_the_tables_decide_as_an_executor_does(at: Scenario) -> None:
    query = "select wait_registry_covers(array['dlq:0:2', %s], %s, %s, 0, 1)"
    for of_mark, of_letter, state in COVERED:
        name, _, topic_id = of_letter.partition("@")
        for of_row in ((of_letter, None), (name, topic_id.replace("-", "+").replace("_", "/") or None)):
            assert at.database.rows(at.settings, query, f"{of_mark}:0:1", *of_row) == [(state == "archived",)], of_row


def test_a_job_is_of_the_topic_that_its_dry_run_saw(at: Scenario) -> None:
    at.show_dead_letters(3)
    asked = at.request(kind=Kind.ARCHIVE).job
    recreate(at)
    at.show_dead_letters(3)
    assert at.execute(asked).counts == {"archived": 3}
    at.read_operations()
    assert at.rows(STATES) == APART


def test_an_operations_topic_that_was_replaced_is_neither_read_nor_written(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(1)
    earlier = at.settings.operations.topic
    at.settings = changed(at.settings, "operations", topic=f"{earlier}.next")
    at.topics.create_own(at.settings)
    asked = ("redrive", f"group={at.group}", "--without-members", "--reason", "fixed", "--send")
    with at.database.connect(at.settings) as connection:
        operations_start(connection, at.admin, at.settings.operations.topic)
        with pytest.raises(ConfigurationError, match=f"set operations.topic everywhere to {earlier}.next"):
            operations_start(connection, at.admin, earlier)
    assert typed(*asked)[0] == 0
    at.settings = changed(at.settings, "operations", topic=earlier)
    status, printed = typed(*asked)
    assert (status, f"set operations.topic to {earlier}.next" in printed, len(at.sent())) == (2, True, 1)


def test_each_is_listed_shown_edited_and_redriven_by_its_place(at: Scenario, kept: list[Place], typed: Type) -> None:
    for arguments in (
        ("list", f"group={at.group}", "--rows", "2"),
        ("show", str(kept[0])),
        ("diff", str(kept[0]), str(kept[0])),
        ("edit", str(kept[0]), "--null-value", "--without-members"),
        ("redrive", str(kept[0]), "--without-members", "--reason", "fixed", "--send"),
    ):
        status, printed = typed(*arguments)
        assert status == 0, printed
    assert len(at.sent()) == 1
    at.read_operations()
    assert "redrive" in typed("audit", "--place", str(kept[0]))[1]


def test_the_console_leads_to_each_of_them(at: Scenario, kept: list[Place]) -> None:
    with running_console(at.settings) as port:
        links = ask(port, "/dead-letters?where=&by=none").links("^/dead-letters/")
        assert len(links) == len(kept)
        assert "This console only reads" in ask(port, "/dead-letters?where=&by=none").text
        assert {ask(port, link).status for link in links} == {200}


def test_a_job_passes_its_canary(at: Scenario, kept: list[Place], handling: Handling) -> None:
    handling.start()
    with sink_of(at):
        assert executor(at, at.request(canary=2).job)().state is State.FINISHED
    assert marked(at) == len(kept)


def write(at: Scenario, *letters: tuple[bytes, str]) -> None:
    """Write dead letters with these keys and messages, and bring them into the table."""
    for offset, (key, message) in enumerate(letters):
        failure = Failure(Reason.FAILED, "builtins.ValueError", message, "trace", now_ms())
        headers = dead_letter_headers((), at.lineage(offset), failure)
        at.topics.produce(at.settings.dead_letter.topic, [Outgoing(b"value %d" % offset, key, tuple(headers))])
    at.read()


def rows(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("command", ["list", "show"])
def test_a_key_in_json_is_what_the_condition_takes(at: Scenario, typed: Type, command: str) -> None:
    keys = [b"\x00\x01\xff", b"AAH/", b"\\x41", "\u00e4".encode()]
    write(at, *((key, "no") for key in keys))
    listed = rows(typed("list", "--json", f"group={at.group}")[1])
    shown = listed if command == "list" else [rows(typed("show", "--json", row["place"])[1])[0] for row in listed]
    assert len(shown) == len(keys)
    for row in shown:
        assert [one["place"] for one in rows(typed("list", "--json", f"key={row['key']}")[1])] == [row["place"]]


def test_messages_that_differ_in_numbers_and_quoted_values_count_as_one(at: Scenario, typed: Type) -> None:
    messages = [
        f"order {n} isn't valid: {'x' * 164} [input_value='{n * 'a'}', type=\"{n}\"] in {n}" for n in (1, 20, 30_000)
    ]
    write(at, *((b"key", message) for message in messages))
    (row,) = rows(typed("list", "--json", "--by", "message", f"group={at.group}")[1])
    assert (row["dead_letters"], "isn't valid" in row["message"]) == (3, True)


def test_a_terminal_gets_the_beginning_of_a_large_value_and_json_all_of_it(at: Scenario, typed: Type) -> None:
    at.topics.produce(at.settings.dead_letter.topic, [b"v" * 5000])
    at.read()
    place = str(at.place())
    printed = typed("show", place)[1]
    assert "(2952 more bytes)" in printed and "--body FILE writes the whole value" in printed
    assert rows(typed("show", "--json", place)[1])[0]["value"] == "v" * 5000


COUNT = 12


@pytest.mark.guarantee("P1.27", "P1.42", "R1.13")
def test_a_record_redriven_to_its_input_is_the_same_record_there(at: Scenario, handling: Handling) -> None:
    at.topics.produce(at.input, [b"another"] * 20)
    at.show_dead_letters(COUNT)
    assert at.request(target=ORIGIN).job.expected == {Category.IDENTITY_LOST: COUNT}, "no member has committed anything"
    plain = handling.start()
    wait_until(lambda: plain.done == 20, what="what the input holds")
    assert at.request(target=ORIGIN).job.expected == {Category.IDENTITY_LOST: COUNT}
    plain.stop()
    handling.start(redeliver_to=RedeliverTo.ORIGIN)
    handling.calls.clear()
    handling.refused = {b"value %d" % number for number in range(3)}
    asked = at.request(target=ORIGIN, canary=4)
    assert asked.job.expected == {Category.REDRIVEN: COUNT}
    with sink_of(at):
        assert executor(at, asked.job)().state is State.PAUSED
    assert pauses(at) == [("system", "3 of 4 canary records came back as dead letters, redrive.canary_above is 0.1")]
    assert marked(at) == 4
    assert {(call.delivery, call.offset) for call in handling.calls} == {(2, offset) for offset in range(4)}
    assert {call.idempotency_key for call in handling.calls} == {at.lineage(offset).wait_id for offset in range(4)}
