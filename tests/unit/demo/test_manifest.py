"""The files of load and downstream survive their writers, and a file of something else is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.demo.calls import Call, read_calls
from wait_registry.demo.evidence import read_evidence
from wait_registry.demo.json_lines import JsonLines
from wait_registry.demo.manifest import Published, fingerprint, read_manifest
from wait_registry.demo.orders import order
from wait_registry.errors import ConfigurationError, DataError
from wait_registry.settings.root import Settings

RECORDS = [
    Published("orders", 0, offset, 1000 + offset, fingerprint(one.key, one.value, one.headers))
    for offset, one in enumerate(order(1, index) for index in range(50))
]
CALL = Call(1, 1000, 1200, 5.0, 5.25, "id", "orders", 0, 7, 1, 200, "ab")
CALLS = [CALL, replace(CALL, number=2, wait_id=None, topic=None, partition=None, offset=None, delivery=None)]
CONTENT = st.none() | st.binary(max_size=4)
HEADERS = st.lists(
    st.tuples(st.text(alphabet=":;0123n\x00é", max_size=3), st.none() | st.binary(max_size=3)), max_size=3
)
RECORD = st.tuples(CONTENT, CONTENT, HEADERS)

both_files = pytest.mark.parametrize(("read", "lines"), [(read_manifest, RECORDS), (read_calls, CALLS)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


def write(path: Path, lines: list[Any], *, rest: bytes = b"") -> None:
    with JsonLines(path) as file:
        for line in lines:
            file.append(line)
    path.write_bytes(path.read_bytes() + rest)


@both_files
def test_a_file_is_read_back_across_two_openings(
    path: Path, read: Callable[[Path], Iterator[Any]], lines: list[Any]
) -> None:
    write(path, lines[:1])
    write(path, lines[1:])
    assert list(read(path)) == lines


@both_files
def test_a_torn_last_line_is_skipped(path: Path, read: Callable[[Path], Iterator[Any]], lines: list[Any]) -> None:
    write(path, lines, rest=b'{"topic": "ord')
    assert list(read(path)) == lines


@both_files
@pytest.mark.parametrize("line", [b"hello\n", b'{"number": 2}\n', b'{"topic": "orders"}\n', b"[]\n"])
def test_a_line_of_something_else_is_refused_with_its_number(
    path: Path, read: Callable[[Path], Iterator[Any]], lines: list[Any], line: bytes
) -> None:
    write(path, lines[:1], rest=line)
    with pytest.raises(DataError, match="line 2"):
        list(read(path))


@pytest.mark.parametrize("content", [b"", b'{"topic": "ord'])
def test_a_manifest_that_names_no_record_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    # Refused before Kafka is asked: no broker runs here.
    with pytest.raises(ConfigurationError, match=r"names no record.*waitreg load --manifest"):
        read_evidence(Settings(), path, path.with_name("calls.jsonl"))


@given(RECORD, RECORD)
def test_fingerprints_are_equal_exactly_when_records_are(
    one: tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]],
    other: tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]],
) -> None:
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (None, b"", [("a", b""), ("b", None)]),
        (b"", None, [("a", b""), ("b", None)]),
        (b"", b"", [("a", None), ("b", None)]),
        (b"", b"", [("b", None), ("a", b"")]),
    ],
)
def test_fingerprints_distinguish_null_and_empty_and_order(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    assert fingerprint(key, value, headers) != fingerprint(b"", b"", [("a", b""), ("b", None)])
