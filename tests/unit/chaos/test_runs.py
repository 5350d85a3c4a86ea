"""A seed is its schedule, which can be played; how processes may end; what a run, or a scenario, comes to."""

from __future__ import annotations

import csv
import json
import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos import __main__ as command
from tests.chaos.companion import Companion, Samples
from tests.chaos.endings import AFTERMATH_MS, LOST_JVM_MS, forgot_brokers, tracebacks, unexpected
from tests.chaos.exactness import WaitLog
from tests.chaos.faults.catalogue import FAULTS, felt
from tests.chaos.history.history import FaultDone, MemorySample
from tests.chaos.report import BROKEN, KEPT, VOID, Entry, entry_of, entry_of_nothing, last_line
from tests.chaos.resources import Reading, trends, unread
from tests.chaos.run import Outcome
from tests.chaos.schedule import SERVERS, SERVICES, schedule_of
from tests.chaos.service import Cause, Exit
from tests.chaos.stage import settings_of
from tests.chaos.workers import Run
from tests.support.naming import Names
from tests.support.settings import settings_against
from wait_registry.demo.calls import Call
from wait_registry.demo.json_lines import JsonLines
from wait_registry.settings.relations import Service, relation_problems

BEGAN_MS, ENDED_MS = 1_000_000, 1_005_000
LONG_AFTER = ENDED_MS + AFTERMATH_MS + 1


def done(name: str, target: str) -> FaultDone:
    return FaultDone(name, target, BEGAN_MS, ENDED_MS, "it happened")


@given(st.integers(min_value=0, max_value=10**9))
def test_a_seed_is_one_schedule_that_can_be_played(seed: int) -> None:
    schedule = schedule_of(seed)
    assert schedule == schedule_of(seed)
    overrides = {**settings_of(schedule), "processor.handler": "http://127.0.0.1:1/"}
    settings = settings_against("127.0.0.1:1", "postgresql://x", Names(), overrides)
    services: tuple[Service, ...] = ("processor", "sink", "sweeper")
    assert [problem.message for service in services for problem in relation_problems(settings, service)] == []
    there = {*SERVERS, "downstream", "group", "everything", "input"}
    there |= set(schedule.names_of(*SERVICES))
    assert 2 <= len(schedule.faults) <= 7
    assert all(fault.target in there and fault.name in FAULTS for fault in schedule.faults)


@pytest.mark.parametrize(
    ("name", "status", "cause", "at_ms", "fault", "has_standby", "fine"),
    [
        ("sink-1", 0, Cause.ASKED, BEGAN_MS, None, False, True),
        ("sink-1", 143, Cause.ASKED, BEGAN_MS, None, False, False),
        ("sink-1", 143, Cause.ASKED_EARLY, BEGAN_MS, None, False, True),
        ("sink-1", 137, Cause.KILLED, BEGAN_MS, None, False, True),
        ("sink-1", 1, Cause.ASKED, BEGAN_MS, ("kill_jvm", "sink-1"), False, True),
        ("sink-1", 1, Cause.ITSELF, BEGAN_MS, ("kill_jvm", "sink-1"), False, True),
        ("sink-1", 1, Cause.ITSELF, LONG_AFTER, ("kill_jvm", "sink-1"), False, False),
        ("sink-1", 1, Cause.ITSELF, BEGAN_MS, ("kill_jvm", "sink-2"), True, False),
        ("sink-1", 3, Cause.ITSELF, BEGAN_MS, ("freeze", "sink-1"), True, True),
        ("sink-1", 3, Cause.ITSELF, BEGAN_MS, ("kill", "postgres"), True, True),
        ("sink-1", 3, Cause.ITSELF, BEGAN_MS, ("freeze", "sink-1"), False, False),
        ("sink-1", 3, Cause.ITSELF, BEGAN_MS, ("kill", "broker"), True, False),
        ("sink-1", 0, Cause.ITSELF, BEGAN_MS, ("kill_jvm", "sink-1"), True, False),
        ("processor-1", 1, Cause.ITSELF, BEGAN_MS, ("kill", "broker"), True, False),
        ("sweeper-1", 3, Cause.ITSELF, BEGAN_MS, ("kill", "postgres"), True, False),
    ],
)
def test_a_process_ends_only_as_it_may(
    name: str, status: int, cause: Cause, at_ms: int, fault: tuple[str, str] | None, has_standby: bool, fine: bool
) -> None:
    faults = [] if fault is None else [done(*fault)]
    assert (unexpected(Exit(at_ms, name, status, cause), faults, has_standby) == "") is fine


@pytest.mark.parametrize(
    ("logged_ms", "fault", "fine"),
    [
        (BEGAN_MS, ("freeze", "broker"), True),
        (BEGAN_MS, ("kill", "everything"), True),
        (BEGAN_MS, ("kill", "processor-2"), False),
        (BEGAN_MS, None, False),
        (BEGAN_MS - 60_000, ("freeze", "broker"), False),
        (None, ("freeze", "broker"), False),
    ],
)
def test_a_processor_ends_by_itself_when_its_client_has_forgotten_all_brokers(
    logged_ms: int | None, fault: tuple[str, str] | None, fine: bool
) -> None:
    time = datetime.fromtimestamp((logged_ms or 0) / 1000, UTC).isoformat()
    message = "known no broker for 30 s (librdkafka issue 5301, after an outage)" if logged_ms is not None else "x"
    ended = Exit(BEGAN_MS + 2_000, "processor-1", 1, Cause.ITSELF)
    faults = [] if fault is None else [done(*fault)]
    forgot = forgot_brokers(ended, [json.dumps({"time": time, "message": message})])
    assert (unexpected(ended, faults, forgot_brokers=forgot) == "") is fine


LOGGED = json.dumps(
    {"time": "1970-01-01T00:16:41+00:00", "level": "INFO", "logger": "x", "message": "failed", "traceback": "T"},
    separators=(",", ":"),
)


@pytest.mark.parametrize(
    ("line", "faults", "fine"),
    [
        ("all is well", [], True),
        ('{"message":"see Traceback (most recent call last)"}', [], True),
        (LOGGED, [], False),
        (LOGGED[:-2], [], False),
        ("Traceback (most recent call last):", [], False),
        (LOGGED, [done("kill_jvm", "sink-1")], True),
        (LOGGED, [done("kill_jvm", "sink-2")], False),
        (LOGGED, [FaultDone("kill_jvm", "sink-1", 0, BEGAN_MS - LOST_JVM_MS, "JVM 7 is gone")], False),
    ],
)
def test_a_traceback_in_a_log_is_found(line: str, faults: list[FaultDone], fine: bool) -> None:
    assert (list(tracebacks("sink-1", [line], faults)) == []) is fine


@pytest.mark.parametrize(
    ("calls", "happened"),
    [([(10, 503)], True), ([(10, 503), (20, 200)], False), ([(10, 499)], False), ([(-10, 503)], False), ([], False)],
)
def test_a_downstream_failed_when_calls_meanwhile_did(
    calls: list[tuple[int, int]], happened: bool, tmp_path: Path
) -> None:
    with JsonLines(tmp_path / "calls.jsonl") as log:
        for after_ms, status in calls:
            log.append(Call(1, BEGAN_MS + after_ms, ENDED_MS, 0, 0, None, None, None, None, None, status, ""))
    assert bool(felt(tmp_path / "calls.jsonl", BEGAN_MS, ENDED_MS, 503)) is happened


def test_error_of_a_companion_is_raised_at_its_end() -> None:
    broken = threading.Event()

    def breaks() -> None:
        broken.set()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Companion("odd", 0.001, breaks):
        assert broken.wait(20)


REGISTRATION = (b"value", {"ORIGINAL_PARTITION": b"0", "ORIGINAL_OFFSET": b"7"})
OUTCOMES = {"done": (None, {"WAIT_OUTCOME": b"done"}), "expired": (None, {"WAIT_OUTCOME": b"expired"})}


@pytest.mark.parametrize(
    ("steps", "false", "left_open"),
    [
        ("wait done", 0, 0),
        ("wait expired", 0, 0),
        ("wait done wait", 0, 1),
        ("wait done expired", 1, 0),
        ("wait expired expired", 1, 0),
        ("wait expired done", 1, 0),
    ],
)
def test_export_without_an_open_registration_is_false(steps: str, false: int, left_open: int) -> None:
    log = WaitLog()
    for number, step in enumerate(steps.split()):
        value, headers = OUTCOMES.get(step, REGISTRATION)
        log.take(b"id", cast(Any, value), cast(Any, headers), 1000 * number)
    assert (len(log.false_exports), len(log.open), log.registered[0]) == (false, left_open, {7})


@pytest.mark.parametrize(
    ("bytes_", "threads", "files", "growing"),
    [
        (0, 0, 0, set()),
        (5_000_000, 0, 0, set()),
        (30_000_000, 0, 0, {"rss_bytes"}),
        (-30_000_000, 0, 0, set()),
        (0, 6, 0, {"threads"}),
        (0, 0, 10, {"open_files"}),
    ],
)
def test_growth_at_rest_is_found(bytes_: int, threads: int, files: int, growing: set[str]) -> None:
    minutes, stretch_s = 40, 300.0
    taken = []
    for second in range(60 * minutes + 1):
        share, busy = second / (60 * minutes), 0 if second % stretch_s >= stretch_s - 30 else 40
        held = 100_000_000 + busy * 1_000_000 + int(bytes_ * share)
        counts = (40 + busy + int(threads * share), 20 + busy + int(files * share))
        taken.append(Reading(1000.0 + second, "sink-1 python", 1, held, *counts))
    found = trends(taken, 1000.0, stretch_s)
    assert {trend.measure for trend in found if not trend.flat} == growing
    assert unread(found, ["sink-1 python"], 8) == []
    assert unread(found, ["sink-1 java"], 8) and unread(trends(taken[:1200], 1000.0, stretch_s), ["sink-1 python"], 8)


def entry(verdict: str, seed: int = 7, **figures: Any) -> Entry:
    """Return a run of one fault."""
    of_nothing = entry_of_nothing(schedule_of(seed), "abc", 40)
    return of_nothing._replace(faults="kill sink-1", verdict=verdict, records=100, **figures)


@pytest.mark.parametrize(
    ("entries", "code", "said"),
    [
        ([entry(KEPT, lost=2)], 0, "1 runs, 1 faults, 100 records: 2 lost, 0 false"),
        ([entry(KEPT), entry(BROKEN, 8, expired=5)], 1, "1 of the runs exported 5 records"),
        ([entry(VOID, 3, lost=50), entry(KEPT, 8)], 1, "1 void; NO CONCLUSIVE RUN of seeds 3"),
        ([entry(VOID), entry(KEPT)], 0, "1 runs, 1 faults, 100 records: 0 lost"),
        ([], 1, "0 runs"),
    ],
)
def test_runs_are_listed_and_summed_up(
    entries: list[Entry], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "play_all", lambda plan: (Run(one, "") for one in entries))
    path = tmp_path / "runs.csv"
    assert command.main(["--ledger", str(path), "--logs", str(tmp_path / "logs")]) == code
    listed = list(csv.DictReader(path.read_text().splitlines())) if entries else []
    assert [row["verdict"] for row in listed] == [one.verdict for one in entries]
    assert said in last_line(entries)


@pytest.mark.parametrize(
    ("void", "unseen", "violations", "verdict"),
    [("", "", [], KEPT), ("", "no memory", [], VOID), ("no proof", "", [], VOID), ("no proof", "", ["lost"], BROKEN)],
)
def test_a_run_is_kept_broken_or_void(void: str, unseen: str, violations: list[str], verdict: str) -> None:
    judged = cast(Any, SimpleNamespace(void=void, violations=violations, figures=Counter(), counts=Counter()))
    outcome = Outcome(schedule_of(7), Path("logs"), judged, [], [], "", unseen, 60.0)
    assert entry_of(outcome, "abc").verdict == verdict


def test_a_service_whose_memory_was_hardly_seen_is_named() -> None:
    samples = Samples([cast(Any, SimpleNamespace(name=name)) for name in ("sink-1", "sink-2")])
    samples.taken += [MemorySample(second, "sink-1", 100) for second in range(3)]
    assert samples.missing() == "the memory of sink-2 was sampled 0 times in 0 s"


@pytest.mark.parametrize(
    "line", ["--records 10", "--scenario soak --runs 1", "--minutes 0", "--jobs x", "--rate 0 --scenario outage"]
)
def test_an_option_without_a_meaning_is_refused(line: str) -> None:
    with pytest.raises(SystemExit) as refusal:
        command.main(line.split())
    assert refusal.value.code == 2
