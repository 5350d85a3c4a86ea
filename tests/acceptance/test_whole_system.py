"""Whole-system runs (minutes): a small demo, an incident, and kill -9 under load."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from tests.acceptance.incident import answered_page, play, stage
from tests.acceptance.kill9 import SERVICES, kill_services
from tests.chaos.redrive import play_redrive
from tests.chaos.stage import Stage
from wait_registry.demo.main import run_demo
from wait_registry.demo.plan import STRATEGIES, DemoPlan
from wait_registry.demo.screen import Screen
from wait_registry.postgres.query_file import query_names

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
@pytest.mark.timeout(600)
@pytest.mark.parametrize("service", SERVICES)
def test_a_service_killed_five_times_breaks_no_guarantee(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        assert kill_services(Screen(), [service], kills=5, seed=1)


@pytest.mark.guarantee("R1.3")
@pytest.mark.timeout(900)
def test_a_redrive_under_kills_sends_each_dead_letter_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled(), Stage() as servers:
        measured, wrong = play_redrive(servers, records=400, rate_per_s=20.0, directory=tmp_path / "redrive")
    assert wrong == [], measured
