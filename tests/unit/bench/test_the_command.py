"""`python -m bench` measures what is asked for, says what came of it, and ends with a status that tells."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as command
from bench.harness.catalogue import row_numbers, row_of
from bench.harness.ledger import Ledger
from bench.harness.lock import only_one
from bench.harness.machine import Busyness
from bench.harness.measurement import Turn
from bench.harness.process import ROOT
from bench.harness.row import Bench, Case, Figures, Line, Row
from bench.harness.servers import Servers
from bench.harness.target import at_least
from tests.support.waiting import PATIENCE_S, wait_until
from tests.unit.bench.made_up import HERE, contender, row
from wait_registry.errors import ConfigurationError

LINES = (Line("rate", lambda round_: round_.figure("c", "A", "records_per_s"), "records/s", at_least(10)),)


# A run whose second contender waits for ever, in a process of its own.
WAITS = """
import pathlib, signal, sys
from contextlib import contextmanager
from bench import __main__ as command
from bench.harness.machine import Busyness
from bench.harness.row import Case
from bench.harness.servers import Servers
from tests.unit.bench.made_up import contender, row

folder = pathlib.Path(sys.argv[1])

@contextmanager
def nowhere():
    yield Servers("kafka:9092", "", {})
    (folder / "never").touch()

def waits(_):
    (folder / "waits").touch()
    signal.pause()

command.FULL_RESULTS = command.ROUND_RESULTS = command.SCRATCH = folder
command.lock_file = lambda: folder / "lock"
command.row_numbers = lambda: [1]
command.rows_of = lambda _: [row([Case("c", [contender("A"), contender("B", waits)])], number=1)]
command.embedded_servers = nowhere
command.busyness = lambda: Busyness(0.1, 0.01, 2)
command._take_signals()
sys.exit(command.main(["--full"]))
"""


class Bare:
    """A benchmark of two rows whose contenders are plain functions; results go to a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.measures: list[Callable[[Bench], Figures]] = [
            lambda _: {"records_per_s": 8.0},
            lambda _: {"records_per_s": 12.0},
        ]
        self.fetched_before: list[int] = []

    def fetch(self) -> None:
        """Take down how many turns had been measured when the peers were fetched."""
        self.fetched_before.append(len(self.turns()))

    def rows(self, numbers: list[int]) -> list[Row]:
        return [row([Case("c", [contender("A", self.measures[number - 1])])], LINES, number) for number in numbers]

    def turns(self, *, full: bool = False) -> list[Turn]:
        ledger = Ledger(self.folder / ("full" if full else "round") / "rounds.jsonl")
        return [entry for entry in ledger.read().entries if isinstance(entry, Turn)]

    def results(self, *, full: bool = False) -> str:
        return (self.folder / ("full" if full else "round") / "RESULTS.md").read_text("utf-8")


@contextmanager
def nowhere() -> Iterator[Servers]:
    yield Servers("kafka:9092", "", {})


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bare:
    bare = Bare(tmp_path)
    monkeypatch.setattr(command, "FULL_RESULTS", tmp_path / "full")
    monkeypatch.setattr(command, "ROUND_RESULTS", tmp_path / "round")
    monkeypatch.setattr(command, "SCRATCH", tmp_path / "scratch")
    monkeypatch.setattr(command, "lock_file", lambda: tmp_path / "lock")
    monkeypatch.setattr(command, "fetch_peers", bare.fetch)
    monkeypatch.setattr(command, "row_numbers", lambda: [1, 2])
    monkeypatch.setattr(command, "rows_of", bare.rows)
    monkeypatch.setattr(command, "embedded_servers", nowhere)
    monkeypatch.setattr(command, "busyness", lambda: Busyness(0.1, 0.01, 2))
    monkeypatch.setattr(command, "versions", lambda: {"Java": "17"})
    monkeypatch.setattr(command, "_origin", lambda full: replace(HERE, full=full))
    return bare


def test_one_round_of_every_row_and_its_results(bare: Bare, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    assert [(turn.row, turn.round) for turn in bare.turns()] == [(1, 1), (2, 1)]
    assert "| rate | 8 records/s | one round | ≥ 10 records/s | not met, not explained |" in bare.results()
    assert "| rate | 12 records/s | one round | ≥ 10 records/s | met |" in bare.results()
    said = capsys.readouterr().out
    assert "| rate | 8 records/s |" in said
    assert re.search(r"^row 1: \d\S* \S+\nrow 2: \d\S* \S+$", said, re.MULTILINE), "how long each took"
    assert not (bare.folder / "full").exists()


def test_only_the_rows_that_are_asked_for(bare: Bare, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--row", "2"]) == 0
    assert [turn.row for turn in bare.turns()] == [2]
    assert "**row 1: not on this commit" in bare.results()
    assert "not measured" in bare.results().partition("## Row 2")[0]
    assert "the results now say `not measured` of row 1" in capsys.readouterr().err


def test_one_round_is_measured_whenever_it_is_asked_for(bare: Bare) -> None:
    command.main(["--row", "2"])
    command.main(["--row", "2"])
    assert [turn.row for turn in bare.turns()] == [2, 2]


def test_a_full_run_is_three_rounds_and_resumed(bare: Bare) -> None:
    assert command.main(["--full", "--row", "1"]) == 0
    assert command.main(["--full"]) == 0
    assert [(turn.row, turn.round) for turn in bare.turns(full=True)] == [
        (1, 1),
        (1, 2),
        (1, 3),
        (2, 1),
        (2, 2),
        (2, 3),
    ]
    assert "8–8" in bare.results(full=True)
    assert command.main(["--full", "--row", "2", "--fresh"]) == 0
    assert len(bare.turns(full=True)) == 9


def test_a_turn_that_failed_is_a_failure_and_a_target_that_is_not_met_is_none(
    bare: Bare, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: Bench) -> Figures:
        raise RuntimeError("no peer")

    bare.measures[0] = fails
    assert command.main([]) == 1
    assert [turn.contender for turn in bare.turns() if turn.row == 2] == ["A"], "the other row went on"
    assert "failed: row 1, round 1 of 1: c, A: RuntimeError: no peer" in capsys.readouterr().err
    assert "| failed: round 1: c, A: RuntimeError: no peer |" in bare.results()


def test_an_interruption_keeps_what_was_measured_and_the_old_results(bare: Bare) -> None:
    command.main(["--full", "--row", "1"])
    before = bare.results(full=True)

    def interrupted(_: Bench) -> Figures:
        raise KeyboardInterrupt

    bare.measures[1] = interrupted
    assert command.main(["--full"]) == 130
    assert len(bare.turns(full=True)) == 3
    assert bare.results(full=True) == before


def test_a_product_that_changes_ends_the_run_and_what_was_measured_is_shown(
    bare: Bare, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def changed(_: Bench) -> Figures:
        monkeypatch.setattr(command, "_origin", lambda full: replace(HERE, full=full, commit="def456"))
        return {"records_per_s": 8.0}

    bare.measures[0] = changed
    assert command.main([]) == 1
    assert [turn.row for turn in bare.turns()] == [1]
    assert "the product changed during the run, from abc123 to def456" in capsys.readouterr().err
    assert "| rate | 8 records/s |" in bare.results()


def test_the_results_can_be_written_anew_from_the_last_measurements(
    bare: Bare, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--report-only"]) == 1
    assert "holds no measurement" in capsys.readouterr().err
    command.main([])
    before = bare.results()
    (bare.folder / "round" / "RESULTS.md").unlink()
    monkeypatch.setattr(command, "_origin", lambda full: replace(HERE, full=full, commit="words-only"))
    assert command.main(["--report-only"]) == 0
    assert bare.results() == before


def test_a_torn_line_is_told(bare: Bare, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--row", "1"])
    with (bare.folder / "round" / "rounds.jsonl").open("ab") as file:
        file.write(b'{"kind": "tu')
    assert command.main(["--row", "1"]) == 0
    assert "rounds.jsonl, line 3 is torn" in capsys.readouterr().err
    assert len(bare.turns()) == 2


def test_the_second_of_two_is_refused(bare: Bare, capsys: pytest.CaptureFixture[str]) -> None:
    with only_one(bare.folder / "lock"):
        assert command.main([]) == 1
    assert "another benchmark is running" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--row", "9"], ["--row", "two"], ["--rows"], ["2"]])
def test_what_cannot_be_asked_for_is_a_usage_error(bare: Bare, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert not (bare.folder / "round").exists()


@pytest.mark.parametrize("arguments", [["--row", "9"], ["--row", "2", "x"], ["--list"], ["--report-only"]])
def test_nothing_is_fetched_for_a_command_that_measures_nothing(bare: Bare, arguments: list[str]) -> None:
    with suppress(SystemExit):
        command.main(["--fetch", *arguments])
    assert bare.fetched_before == []


def test_the_peers_are_fetched_once_and_before_anything_is_measured_where_that_is_asked_for(bare: Bare) -> None:
    assert command.main(["--row", "2"]) == 0
    assert bare.fetched_before == []
    assert command.main(["--fetch"]) == 0
    assert bare.fetched_before == [1]


def test_the_second_of_two_fetches_nothing(bare: Bare) -> None:
    with only_one(bare.folder / "lock"):
        assert command.main(["--fetch"]) == 1
    assert bare.fetched_before == []


def test_without_the_peers_nothing_is_measured(
    bare: Bare, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise ConfigurationError("no peers")

    monkeypatch.setattr(command, "fetch_peers", fails)
    assert command.main(["--fetch"]) == 1
    assert capsys.readouterr().err == "bench: no peers\n"
    assert bare.turns() == []


def test_the_list_names_rows_cases_and_contenders(bare: Bare, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"]) == 0
    assert capsys.readouterr().out == "1. Processor ceiling\n   c: A\n2. Processor ceiling\n   c: A\n"


def test_help_helps() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--help"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0
    assert "make bench FULL=1" in done.stdout
    assert "130 interrupted" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_130_and_what_was_measured_stays(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, str(tmp_path)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_until((tmp_path / "waits").exists, what="the turn that waits")
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "interrupted; what was measured stays" in said
    (entry,) = Ledger(tmp_path / "rounds.jsonl").read().entries
    assert isinstance(entry, Turn)
    assert entry.contender == "A"
    assert not (tmp_path / "RESULTS.md").exists()
    with only_one(tmp_path / "lock"):
        pass


def test_rows_are_found_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "made_up_rows"
    folder.mkdir()
    made = "from tests.unit.bench.made_up import row\nROW = row((), number={number})\n"
    for name, number in (("row_2", 2), ("row_10", 10), ("row_1", 3), ("row_x", 1)):
        (folder / f"{name}.py").write_text(made.format(number=number), "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert row_numbers(folder) == [1, 2, 10]
    assert row_of(10, "made_up_rows").number == 10
    with pytest.raises(ValueError, match="expected ROW to be a Row with number 1"):
        row_of(1, "made_up_rows")


@pytest.mark.parametrize("number", row_numbers())
def test_each_row_can_be_listed_without_servers(number: int, tmp_path: Path) -> None:
    for full in (False, True):
        cases = row_of(number).cases(Bench("", "", tmp_path, quick=False, full=full, say=print))
        names = [(case.name, contender.name) for case in cases for contender in case.contenders]
        assert names
        assert len(names) == len(set(names))
