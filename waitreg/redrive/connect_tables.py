"""What a redrive may assume of tables that a Kafka Connect sink keeps.

Such a sink records no position with its rows: how old the tables are follows from what its group has committed, which
it does after it has written the rows. And it doesn't note which expired dead letters were finished after all.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from wait_registry.clock import Clock
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.group_description import group_members
from wait_registry.kafka.log_reader import first_records
from wait_registry.records.operation import Kind
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from waitreg.connect.lag import read_group_lag
from waitreg.redrive.job_decision import Category

# A worker commits every minute by default (offset.flush.interval.ms).
MAX_AGE_S: Final = 600.0


def require_said(settings: Settings, allowed: Collection[str]) -> None:
    """Refuse expired dead letters alongside a Connect sink, unless those that were finished late may be sent too.

    Raises:
        ConfigurationError: the request allows the former only.
    """
    unknown = settings.sink.kind is SinkKind.CONNECT and Category.MAY_BE_DONE in allowed
    if unknown and Category.FINISHED_LATE not in allowed:
        raise ConfigurationError(
            "a Kafka Connect sink keeps the tables (sink.kind=connect) and doesn't note which expired dead letters "
            "were finished late: ask the called service by the idempotency key, then add --finished-late to "
            "--may-be-done"
        )


def require_current(settings: Settings, kind: Kind, client: Admin, clock: Clock) -> None:
    """Refuse a redrive by tables that a Connect sink hasn't brought up to date: what still waits would be sent.

    Call it before the snapshot of the tables is taken, so that the snapshot isn't older than what was committed. With a
    sink of ours, and for a job that sends nothing, it does nothing.

    Raises:
        TransientError: the sink is behind for longer than `MAX_AGE_S`, or Kafka doesn't answer; retry.
        ConfigurationError: no permission (DESCRIBE on the sink's group, READ on the wait topic).
    """
    if settings.sink.kind is not SinkKind.CONNECT or kind is not Kind.REDRIVE:
        return
    group, topic = settings.sink.connect_group, settings.wait.topic
    # Asked first, because a client that may not see the group gets no offsets, and no reason either.
    members = group_members(client, group)
    lag = read_group_lag(settings.kafka, client, group, topic)
    behind = {number: offset for number, offset in lag.reached.items() if offset < lag.ends[number]}
    # A sink doesn't commit the marker of a transaction after its last record.
    found = first_records(settings.kafka, f"waitreg.redrive.{settings.operations.topic}", topic, behind)
    if found.keys() != behind.keys():
        raise TransientError(f"{topic} doesn't answer in time, so the age of the tables is unknown")
    unread = [record.timestamp()[1] for record in found.values() if record is not None]
    age_s = (clock.now_ms() - min(unread, default=clock.now_ms())) / 1000
    if age_s > MAX_AGE_S:
        raise TransientError(
            f"the Kafka Connect sink is behind: its group {group} (sink.connect_group) hasn't committed a record of "
            f"{topic} that is {age_s / 60:.0f} min old, and has {members} members. The tables don't show what still "
            "waits: look at the connector's state and the worker's log, and wait until the sink has caught up"
        )
