"""`waitreg rewind`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from confluent_kafka.admin import AdminClient

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.group_description import describe_group
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import SourceKind
from wait_registry.settings.tree import Settings
from waitreg.command import Command, Invocation
from waitreg.rewind.offsets import commit, log_ends, members_text, outside, positions, require_no_members
from waitreg.rewind.plan import plan_all
from waitreg.rewind.report import report
from waitreg.rewind.targets import Target, chosen_topics, landings, target_of


@click.command(
    "rewind",
    cls=Command,
    examples=(
        "waitreg rewind --to-time 2026-11-27T08:00:00Z --dry-run",
        "waitreg rewind --to-latest",
        "waitreg rewind --to-earliest --only-outside-log   # after retention has overtaken the group",
        "waitreg rewind --topic orders --partition 3 --to-offset 84000",
    ),
)
@click.option(
    "--to-time",
    metavar="ISO",
    help="Move to the first record at or after this time (UTC by default), or to the end.",
)
@click.option("--to-offset", "offset", type=click.IntRange(min=0), metavar="OFFSET", help="Move to this offset.")
@click.option("--to-latest", "latest", is_flag=True, help="Move to the end of the log.")
@click.option("--to-earliest", "earliest", is_flag=True, help="Move to the first offset that is in the log.")
@click.option("--topic", "topics", multiple=True, help="Only this topic; may be repeated.")
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition of the one topic; may be repeated.",
)
@click.option(
    "--only-outside-log",
    is_flag=True,
    help="Only partitions whose committed offset isn't in the log.",
)
@click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
@click.pass_obj
def command(
    invocation: Invocation,
    /,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    only_outside_log: bool,
    dry_run: bool,
    **chosen_target: Any,
) -> int:
    """Move the committed offsets of a group.

    Moves processor.group in its input topics, in both directions. Prints per partition how many records, at most, are
    handled again or skipped. Registrations aren't changed: a registered record that the group skips still expires.

    Stop every processor of the group first. The command ends with 3 if the group has a member. After a move back, the
    processors first register the records that may be registered already, so that none of these is handled and expires
    as well. After a move forward, the printed `waitreg replay` handles the skipped records.

    Retry and redelivery topics are moved only if --topic names them, and only with --to-earliest: what another program
    has skipped there is then handled. A processor continues by itself where their logs begin.
    """
    settings = invocation.settings()
    if settings.processor.source is SourceKind.SHARE:
        raise ConfigurationError(
            "processor.source is share, and a share group has no offsets that a commit moves: use kafka-share-groups.sh"
        )
    client = admin(settings.kafka)
    target = target_of(**chosen_target)
    chosen = chosen_topics(settings.processor, topics, partitions, target.earliest)
    if not dry_run:
        require_no_members(settings.kafka, settings.processor.group)
    _move(settings, client, target, log_ends(client, chosen, partitions), only_outside_log, dry_run)
    return 0


def _move(
    settings: Settings,
    admin: AdminClient,
    target: Target,
    ends: Mapping[TopicPartition, tuple[int, int]],
    only_outside_log: bool,
    dry_run: bool,
) -> None:
    kafka, group = settings.kafka, settings.processor.group
    found = positions(settings, admin, ends)
    if only_outside_log:
        found = outside(admin, found)
        ends = {place: ends[place] for place in found}
        if not found:
            print(f"Nothing to move: each committed offset of group {group} is in its log.")
            return
    targets = landings(admin, target, ends)
    offsets = {place: landing.offset for place, landing in targets.items()}
    moves = plan_all(found, offsets)
    for line in report(moves, target.time_ms, targets):
        print(line)
    if not dry_run:
        commit(kafka, group, moves)
        print(f"Committed the targets as group {group}.")
        return
    print("Dry run: nothing was changed.")
    described = describe_group(kafka, group)
    if described.held:
        print(f"The move itself would be refused now: {members_text(group, described)}.")
