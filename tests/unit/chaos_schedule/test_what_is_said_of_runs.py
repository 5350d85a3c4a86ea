"""What a run's ends of processes count for, and how runs are written down and summed up."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.chaos import ledger, scenarios
from tests.chaos.__main__ import main
from tests.chaos.checker.violation import Kind
from tests.chaos.drawing import ANY, schedule_of
from tests.chaos.endings import AFTERMATH_MS, unexpected
from tests.chaos.history.history import FaultDone
from tests.chaos.ledger import BROKEN, KEPT, VOID, Entry, ScenarioEntry
from tests.chaos.report import entry_of, entry_of_nothing, last_line
from tests.chaos.run import Outcome
from tests.chaos.scenarios import SCENARIOS
from tests.chaos.schedule import SERVICES
from tests.chaos.service import Cause, Exit
from tests.chaos.workers import Played
from tests.support.signal_handlers import signals_as_before  # noqa: F401 - used by its name

BEGAN_MS, ENDED_MS = 1_000_000, 1_005_000
DURING, LONG_AFTER = 1_002_000, ENDED_MS + AFTERMATH_MS + 1


def done(name: str, target: str) -> FaultDone:
    """Return a fault that happened."""
    return FaultDone(name, target, BEGAN_MS, ENDED_MS, "pid 1 is gone")


EVERY_FAULT = [
    done(name, f"{kind}-1" if kind in SERVICES else kind) for name, kind, _ in (*ANY, ("hold_produce", "group", 1))
]
LOST_JVM, FROZEN, RESTARTED = done("kill_jvm", "sink-1"), done("freeze", "sink-1"), done("kill", "postgres")


@pytest.mark.parametrize(
    ("status", "cause", "fine"),
    [
        (0, Cause.ASKED, True),
        (1, Cause.ASKED, False),
        (137, Cause.ASKED, False),
        (143, Cause.ASKED, False),
        (143, Cause.ASKED_EARLY, True),
        (0, Cause.ASKED_EARLY, True),
        (1, Cause.ASKED_EARLY, False),
        (137, Cause.KILLED, True),
    ],
)
def test_who_is_asked_to_end_ends_in_order(status: int, cause: Cause, fine: bool) -> None:
    assert (unexpected(Exit(DURING, "sink-2", status, cause), EVERY_FAULT, True) == "") is fine


@pytest.mark.parametrize("name", ["processor-1", "visitor-1", "sweeper-1", "downstream"])
@pytest.mark.parametrize("status", [0, 1, 2, 3, 4, 139])
def test_whatever_happens_only_a_sink_may_end_by_itself(name: str, status: int) -> None:
    assert unexpected(Exit(DURING, name, status, Cause.ITSELF), EVERY_FAULT, True) != ""


@pytest.mark.parametrize(
    ("status", "at_ms", "fault", "beside_another", "fine"),
    [
        (1, DURING, LOST_JVM, False, True),
        (1, ENDED_MS + AFTERMATH_MS, LOST_JVM, False, True),
        (1, LONG_AFTER, LOST_JVM, False, False),
        (1, DURING, done("kill_jvm", "sink-2"), True, False),
        (1, DURING, FROZEN, True, False),
        (1, DURING, RESTARTED, True, False),
        (3, DURING, FROZEN, True, True),
        (3, DURING, RESTARTED, True, True),
        (3, DURING, FROZEN, False, False),
        (3, DURING, done("freeze", "sink-2"), True, False),
        (3, DURING, done("kill", "broker"), True, False),
        (3, LONG_AFTER, FROZEN, True, False),
        (0, DURING, LOST_JVM, True, False),
        (2, DURING, LOST_JVM, True, False),
        (139, DURING, LOST_JVM, True, False),
    ],
)
def test_a_sink_ends_without_its_jvm_or_when_another_one_has_its_lock(
    status: int, at_ms: int, fault: FaultDone, beside_another: bool, fine: bool
) -> None:
    assert (unexpected(Exit(at_ms, "sink-1", status, Cause.ITSELF), [fault], beside_another) == "") is fine


def test_a_sink_that_is_asked_to_end_without_its_jvm_may_say_so() -> None:
    assert unexpected(Exit(DURING, "sink-1", 1, Cause.ASKED), [LOST_JVM]) == ""


def entry(verdict: str = KEPT, seed: int = 7, **figures: int) -> Entry:
    """Return a run of two faults."""
    ends = ("done", "dead_lettered", "expired", "lost", "false", "doubled", "changed", "other")
    numbers = dict.fromkeys((*ends, "abandoned", "registered_ms", "exported_ms"), 0)
    return Entry(
        seed=seed,
        commit="abc",
        date="2000-01-01T00:00:00Z",
        seconds=40,
        records=100,
        faults="kill sink-1; storm group",
        verdict=verdict,
        **{**numbers, **figures},
    )


def test_runs_are_appended_under_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    for verdict in (KEPT, BROKEN):
        ledger.append(entry(verdict, lost=1), path)
    first, second = csv.DictReader(path.read_text().splitlines())
    assert (first["seed"], first["verdict"], first["lost"], first["faults"]) == (
        "7",
        KEPT,
        "1",
        "kill sink-1; storm group",
    )
    assert second["verdict"] == BROKEN


def test_every_broken_promise_has_its_column() -> None:
    counts = {kind: number for number, kind in enumerate(Kind, start=1)}
    columns = ledger.counted(counts, endings=100)
    assert (columns["lost"], columns["false"]) == (counts[Kind.LOST], counts[Kind.FALSE_EXPORT])
    assert columns["abandoned"] == counts[Kind.ABANDONED]
    assert sum(columns.values()) == sum(counts.values()) + 100, "none is left out"


def test_what_is_void_is_not_counted_among_the_runs() -> None:
    told = last_line(
        [entry(lost=2), entry(BROKEN, doubled=1, abandoned=3, expired=5), entry(VOID, lost=50, expired=70)]
    )
    assert told == (
        "2 runs, 4 faults, 200 records: 2 lost, 0 false, 1 doubled, 0 changed, 3 abandoned, 0 other; "
        "1 of the runs exported 5 records; 1 void"
    )


def test_seeds_of_which_nothing_can_be_concluded_are_named() -> None:
    entries = [entry(), entry(VOID, seed=8), entry(VOID, seed=3), entry(VOID, seed=3), entry(KEPT, seed=8)]
    assert last_line(entries).endswith("; 3 void; NO CONCLUSIVE RUN of seeds 3")


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([KEPT], 0),
        ([KEPT, KEPT], 0),
        ([VOID, KEPT], 1),
        ([KEPT, BROKEN], 1),
        ([], 1),
    ],
)
def test_a_seed_without_a_conclusive_run_fails_as_a_broken_promise_does(
    verdicts: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = [Played(entry(verdict, seed=seed), "") for seed, verdict in enumerate(verdicts)]
    monkeypatch.setattr("tests.chaos.__main__.play_all", lambda plan: iter(played))
    assert main(["--ledger", str(tmp_path / "runs.csv"), "--logs", str(tmp_path / "logs")]) == code


def test_a_void_run_that_is_played_again_to_an_end_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = [Played(entry(VOID), "void"), Played(entry(KEPT), "")]
    monkeypatch.setattr("tests.chaos.__main__.play_all", lambda plan: iter(played))
    assert main(["--ledger", str(tmp_path / "runs.csv"), "--logs", str(tmp_path / "logs")]) == 0


def test_what_could_not_be_played_for_the_products_own_fault_is_broken() -> None:
    stuck = entry_of_nothing(schedule_of(7), "abc", 180, broken=True)
    assert (stuck.verdict, stuck.other) == (BROKEN, 1)
    assert entry_of_nothing(schedule_of(7), "abc", 180).verdict == VOID


@pytest.mark.parametrize(
    "arguments",
    [
        ["--records", "1000"],
        ["--rate", "10"],
        ["--scenario", "outage", "--seed", "1"],
        ["--scenario", "outage", "--minutes", "5"],
        ["--scenario", "soak", "--runs", "1"],
        ["--scenario", "soak", "--records", "1000"],
    ],
)
def test_an_option_that_means_nothing_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(arguments)
    assert refusal.value.code == 2
    assert "means nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--minutes -1", "a number, more than 0"),
        ("--minutes 0", "a number, more than 0"),
        ("--minutes nan", "a number, more than 0"),
        ("--minutes ten", "a number, more than 0"),
        ("--runs 0", "a whole number, 1 or more"),
        ("--runs -1", "a whole number, 1 or more"),
        ("--jobs 0", "a whole number, 1 or more"),
        ("--jobs -1", "a whole number, 1 or more"),
        ("--jobs 1.5", "a whole number, 1 or more"),
        ("--records 0 --scenario outage", "a whole number, 1 or more"),
        ("--rate 0 --scenario outage", "a number, more than 0"),
        ("--minutes -1 --scenario soak", "a number, more than 0"),
    ],
)
def test_a_number_out_of_bounds_is_refused_by_its_name_with_what_was_seen_and_expected(
    line: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.chaos.__main__.play_all", lambda plan: iter([]))
    for scenario in SCENARIOS:
        monkeypatch.setitem(SCENARIOS, scenario, lambda wanted, commit: iter([]))
    with pytest.raises(SystemExit) as refusal:
        main(line.split())
    assert refusal.value.code == 2
    option, seen, *_ = line.split()
    assert f"argument {option}: saw '{seen}', expected {expected}\n" in capsys.readouterr().err


def test_a_scenario_has_its_line_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def soaked(wanted: object, commit: str) -> Iterator[ScenarioEntry]:
        yield ScenarioEntry("soak", commit, "2000-01-01T00:00:00Z", 60, 100, "nothing grew", BROKEN)

    monkeypatch.setitem(SCENARIOS, "soak", soaked)
    path = tmp_path / "scenarios.csv"
    assert main(["--scenario", "soak", "--ledger", str(path), "--logs", str(tmp_path / "logs")]) == 1
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert (row["scenario"], row["records"], row["verdict"]) == ("soak", "100", BROKEN)


@pytest.mark.parametrize("scenario", ["outage", "soak"])
def test_a_scenario_that_is_broken_off_has_its_line_with_the_reason(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*arguments: object) -> None:
        raise TimeoutError("readiness of all services\nafter 180 s")

    monkeypatch.setattr(scenarios, "Stage", nullcontext)
    monkeypatch.setattr(scenarios, f"play_{scenario}", breaks)
    path = tmp_path / "scenarios.csv"
    assert main(["--scenario", scenario, "--ledger", str(path), "--logs", str(tmp_path / "logs")]) == 1
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert len(rows) == (3 if scenario == "outage" else 1), "the others are played all the same"
    assert {row["verdict"] for row in rows} == {BROKEN}
    assert {row["figures"] for row in rows} == {"broken off by TimeoutError: readiness of all services after 180 s"}


@pytest.mark.parametrize(
    ("began", "ended", "said"),
    [
        ("abc", "abc", "abc"),
        ("abc", "def", "abc-dirty"),
        ("abc", "abc-dirty", "abc-dirty"),
        ("abc-dirty", "def", "abc-dirty"),
    ],
)
def test_a_run_on_a_tree_that_changed_meanwhile_is_of_no_commit(
    began: str, ended: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = iter([began, ended])
    monkeypatch.setattr(ledger, "commit", lambda: next(asked))
    monkeypatch.setattr("tests.chaos.__main__.play_all", lambda plan: iter([Played(entry(), "")]))
    path = tmp_path / "runs.csv"
    assert main(["--ledger", str(path), "--logs", str(tmp_path / "logs")]) == 0
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert row["commit"] == said


@pytest.mark.parametrize(
    ("void", "unseen", "verdict"),
    [("", "", KEPT), ("", "the memory of sink-1 was looked at 0 times in 60 s", VOID), ("no proof", "", VOID)],
)
def test_a_run_whose_services_were_hardly_sampled_is_void(void: str, unseen: str, verdict: str) -> None:
    judged = cast(Any, SimpleNamespace(void=void, violations=[], figures={}, counts={}))
    outcome = Outcome(schedule_of(7), Path("logs"), judged, [], [], 0, "", unseen, 60.0)
    assert entry_of(outcome, "abc").verdict == verdict
    assert outcome.void == void + unseen
