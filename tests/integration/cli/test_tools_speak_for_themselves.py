"""A tool tells what failed in its own line: what the Kafka client prints about it would tear its output apart."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import run_waitreg


def test_a_broker_that_is_not_there_is_told_in_one_line_of_the_command(tmp_path: Path) -> None:
    nowhere = {"WAITREG_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1", "WAITREG_KAFKA__REQUEST_TIMEOUT_S": "1"}
    ended = run_waitreg(tmp_path, "topics", "check", variables=nowhere)
    assert ended.code == 1
    assert [line.partition(":")[0] for line in ended.errors.splitlines()] == ["waitreg topics check"]
    assert "Connection refused" in ended.errors
