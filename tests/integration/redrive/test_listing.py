"""What lists and counts of dead letters show is what their conditions take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.redrive.conftest import Type
from tests.integration.redrive.scenario import Scenario
from tests.integration.sink.applying import now_ms
from tests.support.kafka_io import Outgoing
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers


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
        f"order {n} isn't valid: {'x' * 150} [input_value='{n * 'a'}', type=\"{n}\"] in {n}" for n in (1, 20, 30_000)
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
