"""The reconciliation of a running system: waits until every published record has its end, then judges."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wait_registry.settings.root import Settings
from waitreg.evidence import read_evidence, sink_lag
from waitreg.reconciliation import Reconciliation, reconcile

POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class Awaiting:
    """What is judged, and how long it may take.

    ``manifest`` is what a load wrote, ``calls`` the downstream's log. ``deadline_s`` is from the beginning of the wait.
    """

    settings: Settings
    manifest: Path
    calls: Path
    deadline_s: float


def reconcile_when_ended(awaiting: Awaiting, progress: Callable[[Reconciliation], None]) -> Reconciliation:
    """Return the reconciliation once nothing is waiting or unaccounted for, and Postgres has taken in the whole log.

    After the deadline it is returned as it then is: what has no end counts as waiting or lost. ``progress`` gets each
    look before. Raises TransientError when Kafka or Postgres can't be reached, DataError when a file is something else.
    """
    deadline = time.monotonic() + awaiting.deadline_s
    while time.monotonic() < deadline:
        now = _look(awaiting, look_at_view=False)
        if _has_ended(now) and not sink_lag(awaiting.settings):
            break
        progress(now)
        time.sleep(POLL_S)
    return _look(awaiting, look_at_view=True)


def _look(awaiting: Awaiting, *, look_at_view: bool) -> Reconciliation:
    return reconcile(read_evidence(awaiting.settings, awaiting.manifest, awaiting.calls, look_at_view=look_at_view))


def _has_ended(result: Reconciliation) -> bool:
    return result.finished and not result.lost
