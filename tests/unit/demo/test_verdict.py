"""What the reconciliation prints and decides, and the files that it reads: they survive their writers."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.support.command_line import parsed
from wait_registry.errors import ConfigurationError, DataError
from wait_registry.settings.tree import Settings
from waitreg.downstream.calls import Call, read_calls
from waitreg.load.json_lines import JsonLines
from waitreg.load.manifest import Published, fingerprint, read_manifest
from waitreg.load.orders import order
from waitreg.main import main
from waitreg.reconcile.breaches import Breach, Problem
from waitreg.reconcile.evidence import read_evidence
from waitreg.reconcile.reconciliation import Reconciliation
from waitreg.reconcile.screen import Screen
from waitreg.reconcile.verdict import show_reconciliations

KEPT = Reconciliation(100, 80, 20, 0, 0, 0, 0, 0, dict.fromkeys(Breach, 0), ())
BROKEN = replace(
    KEPT, done=79, lost=1, breaches={**KEPT.breaches, Breach.LOST: 1}, problems=(Problem(Breach.LOST, "orders/0@7"),)
)


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def screen(output: io.StringIO) -> Screen:
    return Screen(Console(file=output, width=120))


UNKNOWN_KILLS = replace(KEPT, not_looked_for=frozenset({Breach.FORGOTTEN}))


@pytest.mark.parametrize(
    ("results", "kept", "shown"),
    [
        pytest.param(
            {"one": KEPT, "two": KEPT},
            True,
            ["published 200 = done 160 + dead-lettered 40; lost 0, doubled 0", "every guarantee was kept"],
            id="kept",
        ),
        pytest.param({"fine": KEPT, "crash": BROKEN}, False, ["crash: lost: orders/0@7", "is broken"], id="broken"),
        pytest.param({"one": replace(KEPT, done=79, waiting=1)}, False, ["still waiting 1"], id="a record still waits"),
        pytest.param(
            {"one": UNKNOWN_KILLS},
            True,
            ["forgotten not checked", "that could be checked was kept"],
            id="kills unknown",
        ),
        pytest.param(
            {"one": replace(KEPT, done=79, done_and_dead_lettered=1)}, True, ["20 + both (crash) 1;"], id="both"
        ),
    ],
)
def test_the_verdict_shows_what_was_kept(
    results: dict[str, Reconciliation], kept: bool, shown: list[str], screen: Screen, output: io.StringIO
) -> None:
    assert show_reconciliations(screen, results) is kept
    assert [text for text in shown if text not in output.getvalue()] == []


@pytest.mark.parametrize("breach", Breach)
def test_the_meaning_of_each_breach_is_below_the_sum(breach: Breach, screen: Screen, output: io.StringIO) -> None:
    show_reconciliations(screen, {"one": KEPT})
    assert f"{breach}: " in output.getvalue().replace("\n" + " " * 9, " ")


def test_a_breach_that_one_run_does_not_check_still_counts_in_another(screen: Screen, output: io.StringIO) -> None:
    seen = replace(KEPT, breaches={**KEPT.breaches, Breach.FORGOTTEN: 3})
    show_reconciliations(screen, {"one": seen, "two": UNKNOWN_KILLS})
    (row,) = (line.split() for line in output.getvalue().splitlines() if line.split()[:1] == ["forgotten"])
    assert row == ["forgotten", "3", "not", "checked", "3"]


def test_without_a_terminal_progress_is_shown_at_its_end(screen: Screen, output: io.StringIO) -> None:
    with screen.progress({"orders": 10}) as show:
        show({"orders": 4})
        assert output.getvalue() == ""
        show({"orders": 10}, note="all of them")
    assert "10/10" in output.getvalue() and "all of them" in output.getvalue()


GIVEN = ("reconcile", "--manifest", "m", "--calls", "c")


def test_kills_are_moments_in_ms_one_each() -> None:
    given = parsed([*GIVEN, "--kill", "1764000000000", "--kill", "1764000060000"])
    assert given.values["kills"] == (1764000000000, 1764000060000)


@pytest.mark.parametrize("text", ["1764000000", "-1", "now", "", "1764000000000000000"])
def test_a_kill_in_seconds_or_words_or_nanoseconds_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main([*GIVEN, "--kill", text]) == 2
    assert "--kill" in capsys.readouterr().err


def test_kills_and_none_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GIVEN, "--kill", "1764000000000", "--no-kills"]) == 2
    assert "exclude each other" in capsys.readouterr().err


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
def test_a_file_is_read_after_two_openings(path: Path, read: Callable[[Path], Iterator[Any]], lines: list[Any]) -> None:
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
