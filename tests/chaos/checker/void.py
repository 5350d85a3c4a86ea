"""Whether a run's faults happened and there is evidence to judge by; a run without is void."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.checker.disturbance import AFTERMATH_MS, BROKER, hits
from tests.chaos.history.history import History

# Polls come a few times per second; on a busy machine one of them may take some seconds.
UNSEEN_MS = 15_000
# A snapshot of the tables is taken every two seconds; Postgres may be down for some of that.
FEWEST_SNAPSHOTS = 3


def void(history: History) -> str:
    """Return why nothing can be concluded from a run; empty when something can."""
    return "; ".join(_reasons(history))


def _reasons(history: History) -> Iterator[str]:
    for fault in history.faults:
        if not fault.happened:
            yield f"no proof that the fault {fault.name} of {fault.target} happened"
    if not history.inputs:
        yield "no record was published"
    if not history.polls:
        yield "no poll saw the commits during the run"
    elif (longest_ms := _longest_unseen_ms(history)) > UNSEEN_MS:
        yield f"no poll saw the commits for {longest_ms} ms, while the broker was available"
    if history.snapshots is not None and len(history.snapshots) < FEWEST_SNAPSHOTS:
        yield f"the tables were seen {len(history.snapshots)} times during the run"


def _longest_unseen_ms(history: History) -> int:
    """Return the longest time without a poll, from the first registration to the last entry, except broker faults."""
    seen = sorted((poll.began_ms, poll.ended_ms) for poll in history.polls)
    entries = [entry.append_ms for entry in history.wait_log]
    if entries:
        seen = [(min(entries), min(entries)), *seen, (max(entries), max(entries))]
    away = [(one.began_ms, one.ended_ms + AFTERMATH_MS) for one in history.faults if hits(one, *BROKER)]
    longest_ms = 0
    for (_, from_ms), (to_ms, _) in pairwise(seen):
        explained = sum(max(0, min(to_ms, ended_ms) - max(from_ms, began_ms)) for began_ms, ended_ms in away)
        longest_ms = max(longest_ms, to_ms - from_ms - explained)
    return longest_ms
