"""`waitreg rewind`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wait_registry.cli.command import Command, Invocation

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from wait_registry.cli.rewind.targets import Target
    from wait_registry.settings.root import Settings


@click.command(
    "rewind",
    cls=Command,
    examples=(
        "waitreg rewind --to-time 2026-11-27T08:00:00Z --dry-run",
        "waitreg rewind --to-latest",
        "waitreg rewind --topic orders --partition 3 --to-offset 84000",
    ),
)
@click.option(
    "--to-time", metavar="ISO", help="Move to the first record at or after this time (UTC by default), or to the end."
)
@click.option("--to-offset", type=click.IntRange(min=0), metavar="OFFSET", help="Move to this offset.")
@click.option("--to-latest", is_flag=True, help="Move to the end of the log.")
@click.option("--to-earliest", is_flag=True, help="Move to the first offset that is in the log.")
@click.option("--topic", "topics", multiple=True, help="Only this topic; may be repeated.")
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    help="Only this partition of the one topic; may be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Print what would change, and change nothing.")
@click.pass_obj
def command(
    invocation: Invocation,
    to_time: str | None,
    to_offset: int | None,
    to_latest: bool,
    to_earliest: bool,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    dry_run: bool,
) -> int:
    """Move the committed offsets of a group.

    Moves processor.group in its input topics, in both directions. Prints per partition how many records, at most, are
    handled again or skipped, and how many of them are registered now. Registrations aren't changed: a registered record
    that the group skips still expires.

    Stop every processor of the group first. The command ends with 3 if the group has a member. After a move back, the
    processors first register the records that may be registered already, so that none of these is handled and expires
    as well. After a move forward, the printed `waitreg replay` handles the skipped records.

    Retry and redelivery topics are moved only if --topic names them, and only with --to-earliest: what another program
    has skipped there is then handled.
    """
    from wait_registry.cli.rewind.targets import Target, chosen_topics, parse_time
    from wait_registry.kafka.clients import admin

    settings = invocation.settings()
    time_ms = None if to_time is None else parse_time(to_time)
    target = Target(time_ms, to_offset, to_latest, to_earliest)
    chosen = chosen_topics(settings.processor, topics, partitions, to_earliest)
    _move(settings, admin(settings.kafka), target, chosen, partitions, dry_run)
    return 0


def _move(
    settings: Settings,
    admin: AdminClient,
    target: Target,
    topics: list[str],
    partitions: tuple[int, ...],
    dry_run: bool,
) -> None:
    from wait_registry.cli.rewind.offsets import commit, log_ends, members_text, positions, require_no_members
    from wait_registry.cli.rewind.plan import plan_all
    from wait_registry.cli.rewind.registered import read_registered
    from wait_registry.cli.rewind.report import report
    from wait_registry.cli.rewind.targets import landings
    from wait_registry.kafka.group_description import describe_group

    kafka, group = settings.kafka, settings.processor.group
    if not dry_run:
        require_no_members(kafka, group)
    ends = log_ends(admin, topics, partitions)
    registered = read_registered(settings, admin, topics)
    targets = landings(admin, target, ends)
    offsets = {place: landing.offset for place, landing in targets.items()}
    moves = plan_all(positions(settings, admin, ends, registered), offsets)
    for line in report(moves, registered, target.time_ms, targets):
        print(line)
    if not dry_run:
        commit(kafka, group, moves)
        print(f"Committed the targets as group {group}.")
        return
    print("Dry run: nothing was changed.")
    described = describe_group(kafka, group)
    if described.held:
        print(f"The move itself would be refused now: {members_text(group, described)}.")
