"""`waitreg dlq purge`: old dead letters of a topic are archived, or their records deleted from Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from wait_registry.dead_letters.filter import parse_filter
from wait_registry.errors import ConfigurationError
from wait_registry.settings.tree import Settings
from waitreg.command import Command
from waitreg.dlq.archive import command as archive
from waitreg.dlq.job_run import require_reason
from waitreg.redrive.records_deletion import Deletion, Part, deletion
from waitreg.redrive.request import asker_of_command


@click.command(
    "purge",
    cls=Command,
    examples=(
        "waitreg dlq purge orders.dlq --before 30d --reason old --send",
        "waitreg dlq purge orders.dlq --before 30d --delete-records --reason 'ticket 17' --send",
    ),
)
@click.argument("topic", metavar="DLQ-TOPIC")
@click.option("--before", required=True, metavar="TIME", help="30d, or an ISO 8601 time: older ones are meant.")
@click.option("--group", metavar="GROUP", help="The consumer group, if the topic has dead letters of several.")
@click.option("--delete-records", is_flag=True, help="Delete the records from Kafka instead, for good.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later. --send needs it.")
@click.option("--send", is_flag=True, help="Do it; without this nothing is changed.")
@click.pass_context
def command(
    context: click.Context, /, topic: str, before: str, group: str | None, delete_records: bool, **given: Any
) -> int:
    """Archive the old dead letters of a topic. Kafka deletes the records by the topic's retention.

    With --delete-records, Kafka deletes the records now, and can only delete all records of a partition before an
    offset. If one of them is an open dead letter, or the tables have no dead letter of it, nothing of the partition is
    deleted, and this ends with 1. Records that the tables haven't read yet stay. The user of kafka.security needs the
    permissions of deploy/kafka/purge.sh.

    The command doesn't check whether another group that reads the topic as an input has read the records.

    The rows in Postgres stay until sweeper.retention_days are over, with the payload. After a loss of Postgres, neither
    the sink nor `waitreg rebuild` can restore the rows whose records are deleted.
    """
    if delete_records:
        if group is not None:
            raise ConfigurationError("--delete-records deletes the records of all groups: leave --group out")
        return _delete(context.obj.settings(), topic, before, **given)
    which = (f"dlq={topic}", f"before={before}", *([f"group={group}"] if group else ()))
    result: int = context.invoke(archive, which=which, **given)
    return result


def _delete(settings: Settings, topic: str, before: str, *, reason: str, send: bool) -> int:
    require_reason(reason, send=send)
    (condition,) = parse_filter([f"before={before}"], datetime.now(UTC)).conditions
    assert isinstance(condition.value, datetime)
    with deletion(settings, topic, condition.value) as found:
        print(f"records of {topic} from before {condition.value:%Y-%m-%d %H:%M:%S} UTC")
        for part in found.parts:
            for line in _lines(topic, part):
                print(line)
        allowed = all(part.obstacle is None for part in found.parts)
        if not any(part.is_deletable for part in found.parts):
            print("there is nothing to delete")
            return 0 if allowed else 1
        print(
            f"a group that reads {topic} as an input loses what it hasn't read before the cut: "
            "`kafka-consumer-groups --describe --all-groups` shows how far each group is"
        )
        if not send:
            print("nothing was deleted: add --send to delete these records from Kafka, for good")
        else:
            allowed = _run(found, reason) and allowed
    return 0 if allowed else 1


def _lines(topic: str, part: Part) -> Iterator[str]:
    first, before, limit = part.prefix
    yield f"partition {part.partition}: begins at {first}, cut before {before}: {before - first} offsets; {limit}"
    if part.obstacle is not None:
        offset, why = part.obstacle
        yield f"partition {part.partition}: nothing is deleted because of {topic}:{part.partition}:{offset}: {why}"


def _run(found: Deletion, reason: str) -> bool:
    """Delete, and print what the broker answered; return whether all of it was deleted."""
    outcome = found.run(asker_of_command(), reason)
    for partition, first in sorted(outcome.answer.first.items()):
        print(f"partition {partition}: begins at {first} now")
    for partition, why in sorted(outcome.answer.failed.items()):
        print(f"partition {partition}: not deleted, as far as is known: {why}")
    for place in outcome.open_again:
        print(f"{place} was restored meanwhile: its row is in the tables, and its record is deleted")
    print(f"job {found.job}: `waitreg dlq audit --job {found.job}` shows it when the sink has read it")
    return not outcome.answer.failed and not outcome.open_again
