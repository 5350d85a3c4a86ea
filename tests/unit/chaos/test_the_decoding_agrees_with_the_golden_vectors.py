"""The checker's own reading of the formats agrees with the golden vectors, which it shares with nobody's code."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.history.entries import WaitEntry
from tests.chaos.history.headers import UnreadableError, headers_of_json
from tests.chaos.history.record import RawRecord
from tests.chaos.history.republished_records import republished
from tests.chaos.history.wait_entries import wait_entry
from tests.chaos.history.wait_id import derived_wait_id
from wait_registry.demo.fingerprint import fingerprint

FOLDER = Path(__file__).parents[2] / "vectors"
KEY, VALUE = b"k", b"v"


def vectors(name: str, operation: str) -> list[Any]:
    listed = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["vectors"]
    chosen = [vector for vector in listed if vector["operation"] == operation]
    assert chosen, f"{name}.json has no {operation}"
    return [pytest.param(vector, id=vector["name"]) for vector in chosen]


def binary(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def headers_of(listed: list[list[Any]]) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((name, binary(value)) for name, value in listed)


@pytest.mark.parametrize("vector", vectors("wait_id", "wait_id"))
def test_wait_ids_are_derived_alike(vector: Any) -> None:
    given = vector["input"]
    consumed = (given["topic"], given["partition"], given["offset"])
    assert derived_wait_id(given["cluster_id"], given["group"], consumed, given["timestamp_ms"]) == vector["expected"]


@pytest.mark.parametrize("vector", vectors("headers_json", "encode"))
def test_headers_come_out_of_their_json(vector: Any) -> None:
    assert tuple(headers_of_json(vector["expected"])) == headers_of(vector["input"])


def read(vector: Any) -> WaitEntry:
    written = vector["expected"]
    raw = RawRecord(
        "wait", 1, 7, 5, vector["input"]["wait_id"].encode(), binary(written["value"]), headers_of(written["headers"])
    )
    return wait_entry(raw, committed=True)


@pytest.mark.parametrize("vector", vectors("wait_record", "encode"))
def test_wait_records_are_read_whole_or_what_they_lack_is_named(vector: Any) -> None:
    given, entry = vector["input"], read(vector)
    original = given["original"]
    if any(value is None for name, value in given.items() if name not in ("source", "traceparent", "tracestate")):
        assert "missing" in entry.unreadable
        return
    seen = entry.registration
    assert seen is not None, entry.unreadable
    assert seen.original == (original["topic"], original["partition"], original["offset"])
    assert seen.content == fingerprint(
        binary(original["key"]), binary(original["value"]), headers_of(original["headers"])
    )
    assert seen.timestamp_type == original["timestamp_type"]
    assert (seen.timestamp_ms, seen.expires_at_ms) == (original["timestamp_ms"], given["expires_at_ms"])
    assert (seen.group, seen.instance, seen.delivery) == (given["group"], given["instance"], given["delivery"])
    source = given["source"]
    assert seen.source == (None if source is None else (source["topic"], source["partition"], source["offset"]))


@pytest.mark.parametrize("vector", vectors("dead_letter", "encode"))
def test_the_original_is_cut_out_of_a_dead_letter(vector: Any) -> None:
    given = vector["input"]
    letter = republished(RawRecord("dlq", 0, 3, 9, KEY, VALUE, headers_of(vector["expected"])), committed=True)
    lineage, wanted = letter.lineage, given["lineage"]
    if any(wanted[name] is None for name in wanted if name not in ("wait_partition", "wait_offset")):
        assert lineage is None
        return
    assert lineage is not None
    assert letter.content == fingerprint(KEY, VALUE, headers_of(given["headers"]))
    texts = (letter.error_class, letter.error_message, letter.error_stacktrace)
    assert texts == tuple(given["failure"][name] for name in ("error_class", "error_message", "error_stacktrace"))
    assert lineage.timestamp_type == wanted["original_timestamp_type"]
    assert (letter.reason, letter.time_ms) == (given["failure"]["reason"], given["failure"]["time_ms"])
    assert lineage.original == (wanted["original_topic"], wanted["original_partition"], wanted["original_offset"])
    assert (lineage.wait_id, lineage.delivery, lineage.group) == (
        wanted["wait_id"],
        wanted["delivery"],
        wanted["group"],
    )
    place = (wanted["wait_partition"], wanted["wait_offset"])
    assert lineage.registration == (None if place == (None, None) else place)


@pytest.mark.parametrize("vector", vectors("lineage", "append"))
def test_a_redelivery_has_the_block_and_no_reason(vector: Any) -> None:
    wanted = vector["input"]["lineage"]
    record = republished(RawRecord("again", 0, 3, 9, KEY, VALUE, headers_of(vector["expected"])), committed=True)
    if record.lineage is not None:
        assert record.content == fingerprint(KEY, VALUE, headers_of(vector["input"]["headers"]))
        assert (record.reason, record.lineage.wait_id) == ("", wanted["wait_id"])
    else:
        assert None in wanted.values()


@pytest.mark.parametrize("vector", vectors("lineage", "split"))
def test_a_block_is_seen_only_where_the_vector_sees_one(vector: Any) -> None:
    headers = headers_of(vector["input"])
    record = republished(RawRecord("again", 0, 3, 9, KEY, VALUE, headers), committed=True)
    if record.lineage is None:
        assert record.content == fingerprint(KEY, VALUE, headers)
    else:
        assert record.content == fingerprint(KEY, VALUE, headers_of(vector["expected"]["headers"]))


@pytest.mark.parametrize("text", ["", "{}x", "7", '[["a"]]', '[["a", "%%"]]', '[[7, "MQ=="]]', '[["a", 7]]'])
def test_what_is_no_list_of_headers_is_named(text: str) -> None:
    with pytest.raises(UnreadableError):
        headers_of_json(text)
