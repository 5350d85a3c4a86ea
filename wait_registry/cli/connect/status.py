"""What `waitreg connect status` shows: a table for people, an object for scripts. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from wait_registry.cli.connect.chosen import Chosen
from wait_registry.cli.connect.connector_state import ConnectorState
from wait_registry.cli.result_rows import render_rows

_COLUMNS = ("connector", "type", "task", "state", "worker", "lag")


def is_well(chosen: Chosen) -> bool:
    """Tell whether everything asked for is there and nothing has failed."""
    return not chosen.missing and not any(state.failed for state in chosen.present)


def as_lines(chosen: Chosen, lags: Mapping[str, int]) -> Iterator[str]:
    """Yield a row a connector and a row a task, then why what failed did, then what isn't there."""
    rows = [row for state in chosen.present for row in _rows(state, lags.get(state.name))]
    if rows:
        yield from render_rows(_COLUMNS, rows, "table")
    elif not chosen.missing:
        yield "no connector of this project is there: `waitreg connect apply` makes them, a NAME shows any other"
    for state in chosen.present:
        yield from (f"failed: {failure}" for failure in state.failures())
    yield from (f"not there: {name} (`waitreg connect apply` makes it)" for name in chosen.missing)


def as_json(chosen: Chosen, lags: Mapping[str, int]) -> str:
    """Return one object: ``connectors`` with their tasks, ``missing`` names; a lag that isn't known is null."""
    connectors = [
        {
            "name": state.name,
            "type": state.kind,
            "state": state.state,
            "worker": state.worker,
            "running": state.runs,
            "failed": state.failed,
            "lag": lags.get(state.name),
            "trace": state.trace,
            "tasks": [
                {"task": task.number, "state": task.state, "worker": task.worker, "trace": task.trace}
                for task in state.tasks
            ],
        }
        for state in chosen.present
    ]
    return json.dumps({"connectors": connectors, "missing": list(chosen.missing)}, ensure_ascii=False)


def _rows(state: ConnectorState, lag: int | None) -> Iterator[tuple[object, ...]]:
    yield state.name, state.kind, "", state.state, state.worker, lag
    for task in state.tasks:
        yield "", "", task.number, task.state, task.worker, None
