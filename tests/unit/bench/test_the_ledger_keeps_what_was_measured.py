"""What was measured is in the ledger when `append` returns, and a writer that was cut off spoils no other line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.harness.ledger import Ledger
from bench.harness.measurement import checked_figures
from tests.unit.bench.made_up import end, stamp, turn

TURN = turn(figures={"records_per_s": 41_234.5, "cpu_us_per_record": 16.0}, lacks="no dead letters", version="1.2")
FAILED = turn("bare loop", failure="it took longer than 5 s", attempt=2)
END = end(failures=["no-op, bare loop: it took longer than 5 s"], noise="load average 3.0 on 2 cores")


def test_what_was_appended_is_read_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "new" / "rounds.jsonl")
    assert ledger.read().entries == ()
    for entry in (TURN, FAILED, END):
        ledger.append(entry)
    assert ledger.read().entries == [TURN, FAILED, END]
    assert ledger.read().complaints == []
    assert len(ledger.path.read_text("utf-8").splitlines()) == 3


def test_where_it_was_measured_is_read_again(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "rounds.jsonl")
    other = replace(stamp("run-2"), versions={"Java": "21"}, date="2026-12-01T00:00:00+00:00")
    ledger.append(turn(stamped=other))
    assert ledger.read().entries[0].stamp == other


@pytest.mark.parametrize("kept", range(1, 40, 7))
def test_a_torn_last_line_is_left_out_and_told(tmp_path: Path, kept: int) -> None:
    ledger = Ledger(tmp_path / "rounds.jsonl")
    ledger.append(TURN)
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole + whole[:kept])
    contents = ledger.read()
    assert contents.entries == [TURN]
    assert len(contents.complaints) == 1
    assert "line 2 is torn" in contents.complaints[0]


def test_what_is_appended_after_a_torn_line_is_whole(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "rounds.jsonl")
    ledger.append(TURN)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-20])
    ledger.append(END)
    contents = ledger.read()
    assert contents.entries == [END]
    assert [complaint.partition(".")[0] for complaint in contents.complaints] == ["rounds"]


def test_a_line_that_only_lacks_its_end_counts(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "rounds.jsonl")
    ledger.append(TURN)
    ledger.path.write_bytes(ledger.path.read_bytes().rstrip(b"\n"))
    ledger.append(END)
    assert ledger.read().entries == [TURN, END]


@pytest.mark.parametrize("line", [b"[]", b"3", b"{}", b'{"kind": "turn"}', b'{"kind": ["x"]}', b"\xff\xfe", b""])
def test_what_is_no_measurement_is_left_out_and_told(tmp_path: Path, line: bytes) -> None:
    ledger = Ledger(tmp_path / "rounds.jsonl")
    ledger.path.write_bytes(line + b"\n")
    ledger.append(TURN)
    contents = ledger.read()
    assert contents.entries == [TURN]
    assert "line 1 is not a measurement" in contents.complaints[0]


@pytest.mark.parametrize("figures", [{}, {"p99_ms": float("nan")}, {"p99_ms": float("inf")}, {"ok": True}])
def test_what_is_no_figure_is_refused(figures: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"expected"):
        checked_figures(figures)
