"""Check the tables that a Kafka Connect sink keeps: its group's position, and rows that should be gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.group_description import group_members
from wait_registry.postgres.queries import Queries
from wait_registry.settings.sweeper import SweeperKind
from wait_registry.settings.tree import Settings
from waitreg.connect.lag import ConnectLag, read_group_lag
from waitreg.doctor.needed_permissions import Need, grant
from waitreg.doctor.postgres import read_only_connection

START: Final = "look at the connector's state and the worker's log; the group's name is sink.connect_group"
# A sweep may run before the sink has written what the previous one exported, but not three times in a row.
SWEEPS: Final = 3
_SQL: Final = Queries("doctor")


def position(settings: Settings) -> Iterator[Diagnosis]:
    """Compare what the sink's group has committed with the wait topic.

    A group that can't be described is only a warning, because the sweeper doesn't need it.
    """
    client, group = admin(settings.kafka), settings.sink.connect_group
    try:
        lag = read_group_lag(settings.kafka, client, group, settings.wait.topic)
        yield position_line(lag, group_members(client, group))
    except WaitRegistryError as refusal:
        fix = grant(settings, Need("group", group, ()), ("DESCRIBE",))
        yield warning(f"the position of group {group} is unknown: {refusal}", fix)


def position_line(lag: ConnectLag, members: int) -> Diagnosis:
    """Judge the position.

    Args:
        lag: of the group.
        members: the number of tasks that are in the group now.
    """
    if lag.beyond:
        number, committed, end = lag.beyond[0]
        seen = (
            f"group {lag.group} has committed {committed} of {lag.topic}-{number}, which ends at {end}: the "
            "topic has lost its end, or was recreated"
        )
        return error(seen, "stop the Connect sink, `waitreg rebuild`, reset its offsets")
    seen = (
        f"group {lag.group}: {lag.committed} of {len(lag.ends)} partitions committed, {lag.offsets} offsets to the "
        f"end of {lag.topic}, {members} tasks in the group"
    )
    return ok(seen) if members else warning(f"{seen}: the sink doesn't run", START)


def freshness(settings: Settings) -> Iterator[Diagnosis]:
    """Check the last sweeps for rows that should be gone, and the tables for the position of a sink of ours.

    If a source exports, no sweeper runs, and the rows of `sweep` are old.
    """
    topic = settings.wait.topic
    with read_only_connection(settings) as connection:
        swept = connection.execute(_SQL["superseded_by_last_sweeps"], {"topic": topic, "sweeps": SWEEPS}).fetchall()
        left = connection.execute(_SQL["rows_of_own_sink"], {"topic": topic}).fetchone()
    if settings.sweeper.kind is SweeperKind.SPARK:
        yield resolved_line([count for (count,) in swept])
    if left is not None and left[0]:
        seen = (
            f"{left[0]} positions of {topic} are those of a sink of ours, and the outbox for a Connect source waits "
            "for that sink"
        )
        yield warning(seen, "stop the Connect sink and run `waitreg rebuild`")


def resolved_line(superseded: list[int]) -> Diagnosis:
    """Judge the numbers of superseded rows of the last sweeps, the newest first."""
    if len(superseded) < SWEEPS or not all(superseded):
        return ok("the last sweeps found no rows that the wait topic shows as settled")
    seen = (
        f"{superseded[0]} rows are due that the wait topic shows as settled or renewed, as in each of the last "
        f"{SWEEPS} sweeps: the Connect sink is behind, or the table was restored or written by a task thought dead"
    )
    return warning(
        seen, "if the sink isn't behind (position of the tables), stop it, run `waitreg rebuild`, and start it"
    )
