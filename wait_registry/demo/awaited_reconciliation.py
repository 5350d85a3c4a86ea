"""The reconciliation of a running system: wait until every published record is settled, then judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wait_registry.demo.evidence import read_evidence, sink_lag
from wait_registry.demo.reconciliation import Breach, Reconciliation, reconcile
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind

POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class Awaiting:
    """What is judged, and how long it may take.

    ``manifest`` is what a load wrote, ``calls`` the downstream's log. ``deadline_s`` is from the beginning of the wait.
    ``kills_ms`` is when processors were killed, ms since the epoch; None when unknown.
    """

    settings: Settings
    manifest: Path
    calls: Path
    deadline_s: float
    kills_ms: Sequence[int] | None = None


def reconcile_when_ended(awaiting: Awaiting, progress: Callable[[Reconciliation, int], None]) -> Reconciliation:
    """Return the reconciliation once nothing is waiting or unaccounted for, and Postgres shows the same as the log.

    After the deadline it is returned as it then is: what has no end counts as waiting or lost. ``progress`` gets each
    look before, and how many entries of the wait topic our sink has not taken in yet. Raises TransientError when Kafka
    or Postgres can't be reached, DataError when a file is something else, ConfigurationError when no record is named.
    """
    deadline = time.monotonic() + awaiting.deadline_s
    while True:
        # The lag first: what the sink takes in while the rest is read can't hide.
        lag = _lag(awaiting.settings)
        now = _look(awaiting)
        if (not lag and _has_ended(now)) or time.monotonic() > deadline:
            return now
        progress(now, lag)
        time.sleep(POLL_S)


def _lag(settings: Settings) -> int:
    # A connector's position isn't in Postgres: what its table shows must do.
    return sink_lag(settings) if settings.sink.kind is SinkKind.SPARK else 0


def _look(awaiting: Awaiting) -> Reconciliation:
    return reconcile(
        read_evidence(
            awaiting.settings, awaiting.manifest, awaiting.calls, look_at_view=True, kills_ms=awaiting.kills_ms
        )
    )


def _has_ended(result: Reconciliation) -> bool:
    return result.finished and not result.lost and not result.breaches[Breach.VIEW_DIFFERS]
