"""Whether a run says anything: its faults happened, and there is evidence to judge by."""

from __future__ import annotations

from itertools import pairwise

from tests.chaos.checker.disturbance import AFTERMATH_MS, BROKER, hits
from tests.chaos.history.history import History

# Looks come a few times a second; on a busy machine one of them may take some seconds.
LOOKLESS_MS = 15_000
# The tables are looked at every two seconds; Postgres may be away for some of that.
FEWEST_VIEWS = 3


def void(history: History) -> str:
    """Return why nothing can be concluded from a run; empty when something can."""
    reasons = [
        f"no proof that the fault {fault.name} of {fault.target} happened"
        for fault in history.faults
        if not fault.happened
    ]
    if not history.published:
        reasons.append("no record was published")
    if not history.looks:
        reasons.append("nobody looked at the commits while it went on")
    elif (longest_ms := longest_without_look_ms(history)) > LOOKLESS_MS:
        reasons.append(f"nobody looked at the commits for {longest_ms} ms, while the broker was there")
    if history.views is not None and len(history.views) < FEWEST_VIEWS:
        reasons.append(f"the tables were seen {len(history.views)} times while it went on")
    return "; ".join(reasons)


def longest_without_look_ms(history: History) -> int:
    """Return for how long nobody looked, from the first registration to the last entry; a broker's faults apart."""
    seen = sorted((look.began_ms, look.ended_ms) for look in history.looks)
    entries = [entry.append_ms for entry in history.wait_log]
    if entries:
        seen = [(min(entries), min(entries)), *seen, (max(entries), max(entries))]
    away = [(one.began_ms, one.ended_ms + AFTERMATH_MS) for one in history.faults if hits(one, *BROKER)]
    longest_ms = 0
    for (_, from_ms), (to_ms, _) in pairwise(seen):
        explained = sum(max(0, min(to_ms, ended_ms) - max(from_ms, began_ms)) for began_ms, ended_ms in away)
        longest_ms = max(longest_ms, to_ms - from_ms - explained)
    return longest_ms
