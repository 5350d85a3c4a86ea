"""Whole-system runs (minutes): a small demo, an incident, and kills of each service under load."""

from __future__ import annotations

import io
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.acceptance.incident import answered_page, play, stage
from tests.chaos.schedule import FULL_SLOTS_S, SKEW_ALLOWANCE_S, PlannedFault, schedule_of
from tests.chaos.seeds import KEPT, play_schedule
from wait_registry.postgres.query_file import query_names
from waitreg.demo.command import run_demo
from waitreg.demo.plan import STRATEGIES, DemoPlan
from waitreg.reconcile.screen import Screen

SMALL = DemoPlan(
    in_flight=(10,),
    seconds=6.0,
    crash_records=150,
    kill_after=40,
    crash_ttl_s=9.0,
    crash_timeout_s=1.5,
    crash_margin_s=1.0,
    skew_allowance_s=0.5,
    sweep_interval_s=1.0,
)


@pytest.mark.timeout(240)
def test_a_small_demo_keeps_every_guarantee() -> None:
    output = io.StringIO()
    exit_code = run_demo(plan=SMALL, screen=Screen(Console(file=output, width=140)))
    text = output.getvalue()
    assert exit_code == 0
    assert "every guarantee was kept" in text
    shares = {name: int(share) for name, share in re.findall(rf"({'|'.join(STRATEGIES)}) .* (\d+)%\s*\n", text)}
    assert (shares["batch"], shares["eager"]) == (0, 100)
    assert 0 < shares["deferred"] < 100
    assert "killed with SIGKILL" in text
    assert "records are in Postgres" in text
    assert "the console, until the demo ends: http://127.0.0.1:" in text
    published = sum(SMALL.records(strategy, 10) for strategy in STRATEGIES) + SMALL.crash_records
    assert f"published {published} = done " in text


@pytest.mark.timeout(900)
def test_every_query_answers_about_a_real_incident(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled(), stage() as shop:
        play(Screen(), shop)
        assert answered_page(shop, tmp_path).count("$ waitreg query") == len(query_names())


@pytest.mark.guarantee("P1.14")
@pytest.mark.timeout(900)
def test_each_service_killed_under_load_loses_no_record(tmp_path: Path) -> None:
    drawn = schedule_of(1)
    settings = {**drawn.settings, "processor.registration": "eager", "processor.commit_interval_s": 0.1}
    # What the processors have in their slots when they die expires; then the sweeper dies.
    exports_s = 5.0 + settings["processor.ttl_s"] + SKEW_ALLOWANCE_S
    kills = {"group": 5.0, "sink-1": 8.0, "sweeper-1": exports_s}
    hang = PlannedFault(5.0 - FULL_SLOTS_S, "hang", "downstream", FULL_SLOTS_S + 0.5)
    faults = (hang, *(PlannedFault(at_s, "kill", name, 1.0) for name, at_s in kills.items()))
    schedule = replace(drawn, settings=settings, modes=("eager",), faults=faults)
    run = play_schedule(schedule, tmp_path, threading.Event())
    assert run.verdict == KEPT, run.story
    assert run.figures["expired"], run
