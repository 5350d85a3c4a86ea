"""What all lines of a check come to: the list of what is to mend, for people, and one JSON object, for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any, Final

from wait_registry.cli.check_line import CheckLine, Standing

OK: Final = 0
UNANSWERED: Final = 1
TO_MEND: Final = 2


def exit_code(lines: Sequence[CheckLine]) -> int:
    """Return 2 when something must be mended, 1 when all that fails is that somebody doesn't answer, else 0."""
    errors = [line for line in lines if line.standing is Standing.ERROR]
    if not errors:
        return OK
    return UNANSWERED if all(line.transient for line in errors) else TO_MEND


def as_json(lines: Sequence[CheckLine], services: Sequence[str]) -> str:
    """Return one JSON object; its names are a promise to scripts."""
    report: dict[str, Any] = {
        "version": version("wait-registry"),
        "services": list(services),
        "checks": [line.as_json() for line in lines],
        "errors": _count(lines, Standing.ERROR),
        "warnings": _count(lines, Standing.WARNING),
    }
    return json.dumps(report, ensure_ascii=False, indent=2)


def to_mend(lines: Sequence[CheckLine]) -> Iterator[str]:
    """Yield the errors once more, numbered: after thirty lines that are well nobody should have to search."""
    errors = [line for line in lines if line.standing is Standing.ERROR]
    if errors:
        yield "\nto mend, in this order:"
    for number, line in enumerate(errors, start=1):
        yield f"{number:>3}. {line.subject}: {line.seen}"
        if line.mend:
            yield f"     {line.mend}"


def summary(lines: Sequence[CheckLine], well: str) -> str:
    """Return the last line: how many errors and warnings there are, or ``well`` without errors."""
    errors, warnings = _count(lines, Standing.ERROR), _count(lines, Standing.WARNING)
    attention = f", {warnings} warning{'s' if warnings > 1 else ''}" if warnings else ""
    return f"{f'{errors} to mend' if errors else well}{attention}"


def _count(lines: Sequence[CheckLine], standing: Standing) -> int:
    return sum(line.standing is standing for line in lines)
