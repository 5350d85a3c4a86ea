"""`waitreg dlq`, as an operator types it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.redrive.scenario import Scenario
from wait_registry.cli.main import main
from wait_registry.local.environment import as_environment

Type = Callable[..., tuple[int, str]]


@pytest.fixture
def typed(at: Scenario, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Type:
    """Return what runs a command and returns its status and what it printed."""
    monkeypatch.chdir(tmp_path)
    for name, value in as_environment(at.settings).items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main(["dlq", *arguments])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run
