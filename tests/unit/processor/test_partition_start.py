"""Where a partition of a retry topic starts after other programs moved its offset, deleted records or recreated it."""

from __future__ import annotations

import pytest

from processor.intake.partition_start import Start, own_start
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata

WAIT_TOPIC, TOPIC = TopicIdentity("wait", "id", 1), "orders.shop.retry.1h"
OWN, KEPT = (CommitMetadata(WAIT_TOPIC, "A", "eager", 50, kept) for kept in (None, 7))
DELETED = CommitMetadata(WAIT_TOPIC, "Z", "eager", 50)


@pytest.mark.guarantee("P1.40", "P1.41")
@pytest.mark.parametrize(
    ("recorded", "offset", "first", "end", "starts_at", "kept_below", "said"),
    [
        (OWN, 5, 5, 9, 5, None, None),
        (OWN, 5, None, None, 5, None, None),
        (OWN, 0, 4, 9, 4, None, "begins at 4 now: 4 offsets"),
        (OWN, 10, 0, 9, None, None, "ends before the group's offset 10"),
        (DELETED, 5, 0, 9, None, None, "was recreated"),
        (None, 5, 0, 9, 5, 5, "holds records before 5"),
        (None, 5, None, 9, 5, 5, "holds records before 5"),
        (None, 5, 5, 9, 5, None, None),
        (KEPT, 8, 2, 9, 8, 7, "holds records before 7"),
        (KEPT, 8, 7, 9, 8, None, None),
    ],
)
def test_only_what_the_group_has_handled_counts_as_passed(
    recorded: CommitMetadata | None,
    offset: int,
    first: int | None,
    end: int | None,
    starts_at: int | None,
    kept_below: int | None,
    said: str | None,
) -> None:
    commits = CommitMetadata(WAIT_TOPIC, "A")
    start, warning = own_start(Start(TOPIC, 0, offset, recorded, end, commits), first)

    assert (start.offset, start.commits) == (starts_at, CommitMetadata(WAIT_TOPIC, "A", kept_below=kept_below))
    assert start.emptied_id == (None if kept_below else "A")
    assert (warning is None) == (said is None)
    assert (said or "") in (warning or "")
    moved = recorded is not None and starts_at != offset
    assert start.recorded == (recorded.with_recorded(None, "eager") if moved and recorded else recorded)
