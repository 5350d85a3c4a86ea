"""A known vulnerability fails the gate until its day, and what was not looked up is reported as such."""

from __future__ import annotations

import importlib.util
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[3] / "setup" / "audit.py"
ENTRY = '[[accepted]]\nid = "CVE-2026-77"\npackage = "example"\nreason = "not reached"\nuntil = 2026-11-21\n'


@pytest.fixture
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_accepted_one_passes_up_to_its_day(audit: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(audit.accepted_ids(ENTRY, date(2026, 11, 21))) == ["CVE-2026-77"]
    assert list(audit.accepted_ids(ENTRY, date(2026, 11, 22))) == []
    assert "which is over" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tool", "code", "said"),
    [
        ("echo 'no route to host' >&2; exit 1", 0, "NOT AUDITED for known vulnerabilities: no route to host"),
        ("exit 3", 0, "NOT AUDITED for known vulnerabilities: pip-audit gave no report"),
        ("echo 'No known vulnerabilities found' >&2", 0, "No known vulnerabilities found"),
        (
            "echo 'Name  Skip Reason'; echo '--- ---'; echo 'one  not found'",
            0,
            "NOT AUDITED, 1 packages: one not found",
        ),
        ("echo 'example 2.0 PYSEC-2026-7 2.1'; exit 1", 1, "Raise what is listed"),
    ],
)
def test_the_gate_fails_for_a_vulnerability_alone(
    audit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    tool: str,
    code: int,
    said: str,
) -> None:
    script = tmp_path / "bin" / "pip-audit"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\n{tool}\n")
    script.chmod(0o755)
    monkeypatch.setattr(audit, "TOOL", tmp_path)
    assert audit.main() == code
    assert said in capsys.readouterr().out
