"""The view that a Kafka Connect sink keeps: how far is its group, and does the table show what the log has resolved?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from wait_registry.cli.checks.kafka_rights import Need, grant
from wait_registry.cli.checks.postgres_server import asking
from wait_registry.cli.connect.lag_lines import ConnectLag, read_connect_lag
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.settings.sweeper import SweeperKind

if TYPE_CHECKING:
    from wait_registry.settings.root import Settings

POSITION: Final = "position of the Connect sink"
RESOLVED: Final = "rows that the log has resolved"
START: Final = "`waitreg connect status`, the worker's log; the name of the group is sink.connect_group"
# Now and then a sweep comes before the sink has shown what the one before exported; not three times in a row.
SWEEPS: Final = 3
_LAST_SWEEPS: Final = """
select coalesce((counts ->> 'superseded')::bigint, 0)
from sweep
where wait_topic = %(topic)s and result in ('done', 'partial')
order by started_at desc
limit %(sweeps)s
"""
_LEFT_OVER: Final = "select count(*) from sink_progress where topic = %(topic)s"


def position(settings: Settings) -> Iterator[Diagnosis]:
    """Compare what the sink's group has committed with the log.

    A group that can't be seen is a warning: the sweeper needs nothing of it.
    """
    from wait_registry.errors import WaitRegistryError
    from wait_registry.kafka.clients import admin
    from wait_registry.kafka.group_members import group_members

    client, group = admin(settings.kafka), settings.sink.connect_group
    try:
        yield position_line(read_connect_lag(settings, client), group_members(client, group))
    except WaitRegistryError as error:
        told = grant(settings, Need("group", group, ()), ("DESCRIBE",))
        yield Diagnosis(POSITION, Severity.WARNING, f"how far group {group} is can't be told: {error}", told)


def position_line(lag: ConnectLag, members: int) -> Diagnosis:
    """Judge it. Pure.

    Args:
        lag: of the group.
        members: tasks that are in the group now.
    """
    if lag.beyond:
        number, committed, end = lag.beyond[0]
        seen = (
            f"group {lag.group} has committed {committed} of {lag.topic}-{number}, which ends at {end}: the log has "
            "lost its end, or was recreated"
        )
        return Diagnosis(POSITION, Severity.ERROR, seen, "stop the Connect sink, `waitreg rebuild`, reset its offsets")
    seen = (
        f"group {lag.group}: {lag.committed} of {lag.partitions} partitions committed, {lag.offsets} offsets to the "
        f"end of {lag.topic}, {members} tasks in the group"
    )
    if members:
        return Diagnosis(POSITION, Severity.OK, seen)
    return Diagnosis(POSITION, Severity.WARNING, f"{seen}: nobody keeps the view", START)


def freshness(settings: Settings) -> Iterator[Diagnosis]:
    """Ask the last sweeps whether the table shows what it shouldn't, and look for what a sink of ours left behind.

    Where a source exports nobody sweeps: what stands in `sweep` is of another time.
    """
    topic = settings.wait.topic
    with asking(settings) as connection:
        swept = connection.execute(_LAST_SWEEPS, {"topic": topic, "sweeps": SWEEPS}).fetchall()
        left = connection.execute(_LEFT_OVER, {"topic": topic}).fetchone()
    if settings.sweeper.kind is SweeperKind.SPARK:
        yield resolved_line([count for (count,) in swept])
    if left is not None and left[0]:
        seen = f"{left[0]} rows of {topic} are left of a sink of ours, and the outbox for a Connect source waits for it"
        yield Diagnosis("sink_progress", Severity.WARNING, seen, "`waitreg rebuild`, with the Connect sink stopped")


def resolved_line(superseded: list[int]) -> Diagnosis:
    """Judge what the last sweeps found superseded, the newest first. Pure."""
    if len(superseded) < SWEEPS or not all(superseded):
        return Diagnosis(RESOLVED, Severity.OK, "the last sweeps found none that stayed")
    seen = (
        f"{superseded[0]} rows are due that the log has resolved or renewed, as in each of the last {SWEEPS} sweeps: "
        "the Connect sink is behind, or the table was restored or written by a task thought dead"
    )
    fix = "if the sink isn't behind (position of the Connect sink): stop it, `waitreg rebuild`, start it"
    return Diagnosis(RESOLVED, Severity.WARNING, seen, fix)
