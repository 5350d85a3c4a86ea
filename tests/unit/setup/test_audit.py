"""A known vulnerability fails the gate until its day, and a package that was not looked up is reported as such."""

from __future__ import annotations

import importlib.util
import json
import sys
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "setup" / "audit.py"
TODAY = date(2026, 11, 21)
FOUND = {"id": "PYSEC-2026-7", "aliases": ["CVE-2026-77"], "fix_versions": ["2.1"], "description": "..."}
ENTRY = '[[accepted]]\nid = "CVE-2026-77"\npackage = "example"\nreason = "not reached"\nuntil = 2026-11-21\n'


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "audit", module)
    spec.loader.exec_module(module)
    return module


def report(*packages: dict[str, Any]) -> dict[str, Any]:
    return {"dependencies": list(packages), "fixes": []}


VULNERABLE = {"name": "example", "version": "2.0", "vulns": [FOUND]}
SOUND = {"name": "sound", "version": "1.0", "vulns": []}
UNKNOWN = {"name": "unknown", "skip_reason": "Dependency not found: unknown (1.0)"}


def test_an_accepted_one_passes_up_to_its_day_and_not_beyond(audit: ModuleType) -> None:
    accepted = audit.read_accepted(ENTRY)
    assert not audit.judge(report(VULNERABLE), accepted, TODAY).failed
    overdue = audit.judge(report(VULNERABLE), accepted, date(2026, 11, 22))
    assert overdue.failed
    assert "which is over" in overdue.lines[0]


def test_it_is_accepted_in_its_own_package_alone(audit: ModuleType) -> None:
    assert audit.judge(report({**VULNERABLE, "name": "other"}), audit.read_accepted(ENTRY), TODAY).failed


def test_what_was_not_looked_up_is_never_told_as_sound(audit: ModuleType) -> None:
    verdict = audit.judge(report(SOUND, UNKNOWN), (), TODAY)
    assert not verdict.failed
    assert verdict.lines[0].startswith("NOT AUDITED, 1 packages (unknown): Dependency not found")
    assert verdict.lines[-1].startswith("audited 1 packages")


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("exit 3", "NOT AUDITED for known vulnerabilities: pip-audit gave no report"),
        (f"echo '{json.dumps(report(SOUND))}'", "audited 1 packages: 0 known vulnerabilities"),
        (f"echo '{json.dumps(report(VULNERABLE))}'; exit 1", "VULNERABLE example"),
    ],
)
def test_the_gate_fails_for_a_vulnerability_alone(
    audit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    tool: str,
    said: str,
) -> None:
    script = tmp_path / "bin" / "pip-audit"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit 0\n{tool}\n')
    script.chmod(0o755)
    monkeypatch.setattr(audit, "TOOL", tmp_path)
    assert audit.main() == ("VULNERABLE" in said)
    assert said in capsys.readouterr().out
