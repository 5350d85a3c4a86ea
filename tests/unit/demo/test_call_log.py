"""The downstream's log survives its writer, and a file that is none is refused by line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wait_registry.demo.calls import ABORTED, Call, read_calls
from wait_registry.demo.json_lines import JsonLines
from wait_registry.errors import DataError

CALL = Call(1, 1000, 1200, 5.0, 5.25, "id", "orders", 0, 7, 1, 200, "ab")


def test_what_is_appended_is_read_back_across_two_openings(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    second = replace(CALL, number=2, wait_id=None, topic=None, partition=None, offset=None, delivery=None)
    for call in (CALL, second):
        with JsonLines(path) as log:
            log.append(call)
    assert list(read_calls(path)) == [CALL, second]
    assert CALL.latency_s == 0.25


def test_a_torn_last_line_is_a_call_that_never_finished(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with JsonLines(path) as log:
        log.append(CALL)
    path.write_bytes(path.read_bytes() + b'{"number": 2, "star')
    assert list(read_calls(path)) == [CALL]


@pytest.mark.parametrize("line", [b"hello\n", b'{"number": 2}\n', b"[]\n"])
def test_a_line_that_is_no_call_is_refused_with_its_number(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "calls.jsonl"
    with JsonLines(path) as log:
        log.append(CALL)
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(DataError, match="line 2"):
        list(read_calls(path))


@pytest.mark.parametrize(
    ("status", "succeeded"), [(200, True), (204, True), (302, False), (ABORTED, False), (503, False)]
)
def test_only_a_2xx_answer_is_work_done(status: int, succeeded: bool) -> None:
    assert replace(CALL, status=status).succeeded is succeeded
