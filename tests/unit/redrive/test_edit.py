"""An edit changes what it says and nothing else, refuses what it may not change, and lists the difference."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.jobs import requested
from wait_registry.dead_letters.difference import Content, difference
from wait_registry.errors import ConfigurationError, DataError
from wait_registry.kafka.targets import Target
from wait_registry.records.headers import decode_headers_json, encode_headers_json
from wait_registry.records.operation import decode_event, encode_event
from waitreg.redrive.edit import record_digest, replaced, replacement_digest, require_room, review, with_headers
from waitreg.redrive.job_decision import Contents

BYTES = st.none() | st.binary(max_size=20)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3)
CONTENTS = st.builds(Content, BYTES, st.lists(st.tuples(NAMES, BYTES), max_size=3).map(tuple), BYTES)
BEFORE = Content(b"k", (("a", b"1"), ("DLQ_TIME", b"x"), ("a", b"2"), ("b", None)), b"value\n")


FIRST = ("orders", 3, 1234567)


def row_of(content: Content, place: tuple[str, int | None, int] = FIRST) -> Contents:
    """Return the contents of a dead letter with this record."""
    key = "01a1fbe7-44fb-878e-8f2b-9dd4cdc70500"
    record = (content.key, content.value, encode_headers_json(content.headers).decode(), key)
    return Contents(*record, *place, 1795227600123, "create", key, 0, 0, "billing", "host-1", 1)


@given(CONTENTS, CONTENTS)
def test_a_job_that_is_read_again_sends_the_edited_record(before: Content, after: Content) -> None:
    if before == after:
        with pytest.raises(ConfigurationError, match="nothing is edited"):
            review(before, after)
        return
    found = review(before, after)
    assert found.lines and found.replacement.new_key == (before.key != after.key)
    job = decode_event(encode_event(requested("shop", replacement=found.replacement)))
    row = replaced(row_of(before), job, "c")  # type: ignore[arg-type]
    assert row is not None
    headers = (*after.headers, ("WAITREG_EDITED", b"job-1"))
    assert (row.key, row.body) == (after.key, after.value)
    assert decode_headers_json(row.headers_json.encode()) == headers
    assert replaced(row_of(after), job, "c") is None  # type: ignore[arg-type]


@given(CONTENTS, CONTENTS)
def test_two_records_have_one_digest_only_if_they_are_the_same(left: Content, right: Content) -> None:
    assert (record_digest(left) == record_digest(right)) == (left == right)


def test_the_digest_of_an_edit_is_of_what_it_sends_and_of_what_it_replaces() -> None:
    edits = [
        review(BEFORE, BEFORE._replace(value=b"x")),
        review(BEFORE, BEFORE._replace(value=b"y")),
        review(BEFORE, BEFORE._replace(value=None)),
        review(BEFORE._replace(key=b"l"), BEFORE._replace(value=b"x", key=b"l")),
        review(BEFORE._replace(value=b"z"), BEFORE._replace(value=b"x")),
    ]
    assert len({replacement_digest(edit.replacement) for edit in edits}) == len(edits)


@pytest.mark.parametrize(
    "headers",
    [
        (("a", b"1"), ("a", b"2"), ("b", None)),
        (*BEFORE.headers, ("DLQ_REASON", b"failed")),
        (*BEFORE.headers, ("DLQ_OWN", b"x")),
        (*BEFORE.headers, ("WAIT_LINEAGE", b"4")),
        (*BEFORE.headers, ("WAITREG_EDITED", b"job-1")),
        (*BEFORE.headers, ("DLQ_TIME", b"x")),
        (*BEFORE.headers, ("DLQ_TIME", b"y")),
    ],
)
def test_headers_that_this_system_writes_stay_as_they_are(headers: Any) -> None:
    with pytest.raises(ConfigurationError, match="wait-registry writes the header"):
        review(BEFORE, BEFORE._replace(headers=headers))


@pytest.mark.parametrize("name", ["a\0", "\ud800"])
def test_a_name_that_cannot_be_sent_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="can't send"):
        review(BEFORE, BEFORE._replace(headers=(*BEFORE.headers, (name, b""))))


@pytest.mark.parametrize("part", [b'["a\\u0000", null]', b'["\\ud800", null]', b'["a", "no base64"]', b'["a"]'])
def test_a_request_that_no_table_or_client_takes_is_not_read(part: bytes) -> None:
    edit = review(BEFORE, BEFORE._replace(headers=(("DLQ_TIME", b"x"), ("name", None)))).replacement
    event = encode_event(requested("shop", replacement=edit))
    assert decode_event(event).replacement == edit  # type: ignore[union-attr]
    with pytest.raises(DataError, match="no record of the operations topic"):
        decode_event(event.replace(b'["name",null]', part))


def test_an_earlier_edit_is_named_no_more() -> None:
    before = Content(None, (("WAITREG_EDITED", b"old"), ("a", b"1")), b"x")
    job = requested("shop", replacement=review(before, before._replace(value=b"y")).replacement)
    row = replaced(row_of(before), job, "c")
    assert row is not None
    assert decode_headers_json(row.headers_json.encode()) == (("a", b"1"), ("WAITREG_EDITED", b"job-1"))


@pytest.mark.guarantee("P1.27")
def test_an_edited_record_has_the_key_of_its_edit() -> None:
    job = requested("billing", replacement=review(BEFORE, BEFORE._replace(value=b"y")).replacement)
    rows = [replaced(row_of(BEFORE, place), job, "MkU3OEVBNTcwNTJENDM2Qg") for place in (FIRST, ("orders", None, 1))]
    keys = [row and row.idempotency_key for row in rows]
    assert keys == ["01a1fbe7-44fb-8c33-bdcb-0981f8ce8835", None], "as in tests/vectors/wait_id.json"


@pytest.mark.parametrize(
    ("given_", "without", "names"),
    [
        ([("a", b"9")], [], [("a", b"9"), ("DLQ_TIME", b"x"), ("b", None)]),
        ([("a", b"8"), ("a", b"9")], [], [("a", b"8"), ("a", b"9"), ("DLQ_TIME", b"x"), ("b", None)]),
        ([("c", b"")], [], [*BEFORE.headers, ("c", b"")]),
        ([("b", b"")], ["a"], [("DLQ_TIME", b"x"), ("b", b"")]),
        ([("a", b"1")], ["a"], [("a", b"1"), ("DLQ_TIME", b"x"), ("b", None)]),
    ],
)
def test_headers_are_set_in_their_place(given_: Any, without: Any, names: Any) -> None:
    assert list(with_headers(BEFORE.headers, given_, without)) == names


def test_a_header_that_is_not_there_is_not_removed() -> None:
    with pytest.raises(ConfigurationError, match="no header 'c'"):
        with_headers(BEFORE.headers, [], ["c"])


def test_a_request_that_the_operations_topic_does_not_take_is_refused() -> None:
    job = requested("shop", replacement=review(BEFORE, BEFORE._replace(value=bytes(30_000))).replacement)
    require_room(job, Target("operations", 1, 50_000))
    with pytest.raises(ConfigurationError, match=r"max\.message\.bytes is 40000: raise that"):
        require_room(job, Target("operations", 1, 40_000))


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        (b"value\r\n", ["  line 1:", "  - value", "  + value\\x0d"]),
        (b"value", ["  line 2:", "  - "]),
        (b"\xef\xbb\xbfvalue\n", ["  line 1:", "  - value", "  + \\ufeffvalue"]),
        (b"\xff", ["  line 1:", "  - 00000000  76 61 6c 75 65 0a", "  + 00000000  ff"]),
    ],
)
def test_no_byte_is_hidden_in_a_review(value: bytes, lines: list[str]) -> None:
    (first, *shown) = difference(BEFORE, BEFORE._replace(value=value))
    assert first.startswith(f"value: 6 bytes, {len(value)} bytes")
    assert [line[: len(want)] for line, want in zip(shown, lines, strict=True)] == lines


def test_a_json_value_is_compared_field_by_field_too() -> None:
    left = Content(None, (), b'{"id": 12345678901234567890, "rate": 1.10}')
    *_, last = difference(left, left._replace(value=b'{"id": 12345678901234567891, "rate": 1.10}'))
    assert last == "$.id: 12345678901234567890 -> 12345678901234567891"


def test_json_that_is_broken_is_named() -> None:
    left = Content(None, (), b'{"amount": 12.50}')
    *_, last = difference(left, left._replace(value=b'{"amount": 12,50}'))
    assert last == "The value was JSON and isn't any more."


def test_long_values_that_differ_much_show_the_first_difference() -> None:
    left, right = (Content(None, (), sign * 5_000) for sign in (b"a\n", b"b\n"))
    first, *shown = difference(left, right)
    assert first.endswith("the first difference is at byte 0")
    more = "  more than 200 lines differ, of which this is the first; compare SHA-256:"
    assert shown == [more, "  line 1:", "  - a", "  + b"]


SAME = Content(b"k", (("a", b"1"),), b'{"id": 1, "lines": [{"sku": "x", "price": 9.10}]}')


@given(CONTENTS, CONTENTS)
def test_there_is_a_difference_exactly_if_one_byte_differs(left: Content, right: Content) -> None:
    assert bool(list(difference(left, right))) == (left != right)


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({"value": b'{"id": 1, "lines": [{"sku": "y", "price": 9.10}]}'}, ['$.lines[0].sku: "x" -> "y"']),
        ({"value": b'{"id": 1, "lines": []}'}, ['$.lines[0]: {"sku": "x", "price": 9.10} -> none']),
        ({"value": b'{"id": true, "lines": [{"sku": "x", "price": 9.10}]}'}, ["$.id: 1 -> true"]),
        ({"headers": (("a", b"1"), ("a", None))}, ["headers: 1, 2", "  line 2:", "  + a: null"]),
        ({"headers": (("a", b""),)}, ["headers: 1, 1", "  line 1:", '  - a = "1"', '  + a = ""']),
        (
            {"value": b"[1e999999999999999999999]"},
            ['$: {"id": 1, "lines": [{"sku": "x", "price": 9.10}]} -> [1e999999999999999999999]'],
        ),
        ({"key": None}, ["key: 1 bytes, null"]),
        ({"key": b"l"}, ["key: 1 bytes, 1 bytes; the first difference is at byte 0", "  - k", "  + l"]),
    ],
)
def test_a_difference_is_named(changed: dict[str, object], lines: list[str]) -> None:
    assert list(difference(SAME, SAME._replace(**changed)))[-len(lines) :] == lines  # type: ignore[arg-type]


def test_the_same_json_in_another_way_differs_in_its_lines_alone() -> None:
    before, value = (SAME.value or b"").decode(), b'{"id":1,"lines":[{"sku":"x","price":9.10}]}'
    first, *lines = difference(SAME, SAME._replace(value=value))
    assert first.endswith("the first difference is at byte 6")
    assert lines == ["  line 1:", f"  - {before}", f"  + {value.decode()}"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (b'{"a":NaN,"b":1}', b'{"a":NaN,"b":2}'),
        (b'{"role":"user","role":"admin"}', b'{"role":"root","role":"admin"}'),
        ('{"a":1}'.encode("utf-16"), b'{"a":1}'),
    ],
    ids=["NaN", "a name twice", "another encoding"],
)
def test_what_programs_read_in_different_ways_is_compared_as_bytes(left: bytes, right: bytes) -> None:
    first, *lines = difference(SAME._replace(value=left), SAME._replace(value=right))
    assert "the first difference is at byte" in first
    assert not any(line.startswith("$") for line in lines)


def test_a_long_name_is_not_written_for_each_of_a_thousand_fields() -> None:
    name = "n" * 200_000
    left, right = (Content(None, (), json.dumps({name: [digit] * 5_000}).encode()) for digit in (1, 2))
    tracemalloc.start()
    assert sum(map(len, difference(left, right))) < 2_000_000
    assert tracemalloc.get_traced_memory()[1] < 32 * 1024 * 1024
    tracemalloc.stop()


def test_json_of_more_than_a_megabyte_is_compared_as_bytes() -> None:
    small, large = (Content(None, (), json.dumps([1] * many).encode()) for many in (1, 400_000))
    first, *_, last = difference(small, large)
    assert first == "value: 3 bytes, 1200000 bytes; the first difference is at byte 2"
    assert last == "Values of more than 1048576 bytes aren't compared field by field."
