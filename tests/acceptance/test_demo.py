"""The demo, small: it ends with a kept reconciliation (`make acceptance`; `make demo` is the whole)."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from wait_registry.demo.main import run_demo
from wait_registry.demo.plan import SMALL
from wait_registry.demo.screen import Screen


@pytest.mark.acceptance
@pytest.mark.timeout(240)
def test_a_small_demo_keeps_every_promise() -> None:
    output = io.StringIO()
    exit_code = run_demo(plan=SMALL, screen=Screen(Console(file=output, width=140)))
    text = output.getvalue()
    assert exit_code == 0
    assert "every guarantee was kept" in text
    assert "killed with SIGKILL" in text
    assert "records are in Postgres" in text
    published = SMALL.records("batch", 10) + SMALL.records("registry", 10) + SMALL.crash_records
    assert f"published {published} = done " in text
