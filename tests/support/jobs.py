"""Jobs of operators, as tests ask for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wait_registry.records.operation import Kind, Requested
from wait_registry.settings.tree import Settings
from waitreg.redrive.operator_events import write_request


def requested(group: str, conditions: Iterable[str] = (), **changes: object) -> Requested:
    """Return what anna asks for with the command: a redrive of one record per second, unless ``changes`` differ."""
    asked: dict[str, Any] = {
        "job": "job-1",
        "kind": Kind.REDRIVE,
        "by": "anna",
        "authenticated": False,
        "via": "command",
        "reason": "fixed",
        "ends": {},
        "rate": 1.0,
    }
    return Requested(group=group, conditions=tuple(conditions), **{**asked, **changes})


def ask_for_approval(settings: Settings, job: Requested) -> None:
    """Have a job await an approval, as a command with --send does."""
    write_request(settings, job.model_copy(update={"approval": True}))
