"""The manifest survives its writer, and a file that is none, or names nothing, is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_a_manifest_is_read_back_as_it_was_written_across_two_openings(tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    for half in (RECORDS[:20], RECORDS[20:]):
        with JsonLines(path) as writer:
            for record in half:
                writer.append(record)
    assert list(read_manifest(path)) == RECORDS


def test_a_line_stands_whole_in_the_file_before_the_next_one_is_written(tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    with JsonLines(path) as writer:
        for number, record in enumerate(RECORDS, start=1):
            writer.append(record)
            assert path.read_bytes().count(b"\n") == number
            assert path.read_bytes().endswith(b"\n")


def test_a_torn_last_line_is_a_record_that_was_not_written_down(tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    with JsonLines(path) as writer:
        writer.append(RECORDS[0])
    path.write_bytes(path.read_bytes() + b'{"topic": "ord')
    assert list(read_manifest(path)) == RECORDS[:1]


def test_a_file_that_is_no_manifest_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    path.write_text('{"topic": "orders"}\n')
    with pytest.raises(DataError, match="line 1"):
        list(read_manifest(path))


@pytest.mark.parametrize("content", [b"", b'{"topic": "ord'])
def test_a_manifest_that_names_no_record_is_judged_by_nobody(tmp_path: Path, content: bytes) -> None:
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_bytes(content)
    # Refused before Kafka is asked: there is none here.
    with pytest.raises(ConfigurationError, match=r"names no record.*waitreg load --manifest"):
        read_evidence(Settings(), manifest, tmp_path / "calls.jsonl")
