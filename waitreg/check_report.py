"""Diagnoses as lines with a list of fixes, for people, and as one JSON object, for scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

from wait_registry.diagnosis import Diagnosis, Severity

OK: Final = 0
UNANSWERED: Final = 1
TO_FIX: Final = 2


def shown(line: Diagnosis) -> str:
    """Return a diagnosis as a line, with a second line for its fix."""
    fix = f"\n{'':<10}fix: {line.fix}" if line.fix and line.severity is not Severity.OK else ""
    return f"{line.severity:<8}  {line.subject}: {line.message}{fix}"


def exit_code(lines: Sequence[Diagnosis]) -> int:
    """Return 2 if something must be fixed, 1 if the only errors are servers that don't answer, else 0."""
    errors = [line for line in lines if line.severity is Severity.ERROR]
    if not errors:
        return OK
    return UNANSWERED if all(line.transient for line in errors) else TO_FIX


def as_json(lines: Sequence[Diagnosis], services: Sequence[str]) -> str:
    """Return one JSON object; scripts rely on its names."""
    report: dict[str, Any] = {
        "version": version("wait-registry"),
        "services": list(services),
        "checks": [line.as_json() for line in lines],
        "errors": _count(lines, Severity.ERROR),
        "warnings": _count(lines, Severity.WARNING),
    }
    return json.dumps(report, ensure_ascii=False, indent=2)


def summary(lines: Sequence[Diagnosis], without_errors: str) -> str:
    """Return the last line: how many errors and warnings there are, or ``without_errors``."""
    errors, warnings = _count(lines, Severity.ERROR), _count(lines, Severity.WARNING)
    attention = f", {warnings} warning{'s' if warnings > 1 else ''}" if warnings else ""
    return f"{f'{errors} to fix' if errors else without_errors}{attention}"


def _count(lines: Sequence[Diagnosis], severity: Severity) -> int:
    return sum(line.severity is severity for line in lines)
