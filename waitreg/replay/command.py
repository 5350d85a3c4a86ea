"""`waitreg replay`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import click

from processor.intake.replay_progress import Window
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.commit_metadata import decode_metadata
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.offset_ranges import parse_ranges
from wait_registry.logs import configure_logging
from wait_registry.records.topics import TopicPartition
from wait_registry.service.process import ServiceProcess
from wait_registry.settings.processor import RedeliverTo, SourceKind
from wait_registry.settings.tree import Settings
from waitreg.command import Command, Invocation
from waitreg.processor import make_handlers_importable
from waitreg.replay.service import ReplayService
from waitreg.rewind.offsets import log_ends
from waitreg.rewind.targets import Target, by_topic, chosen_topics, landings, parse_time

log = logging.getLogger(__name__)


@click.command(
    "replay",
    cls=Command,
    examples=(
        "waitreg replay orders:0:1200-1900 orders:1:1150-1870",
        "waitreg replay --from-time 2026-11-27T08:00:00Z --to-time 2026-11-27T09:30:00Z --topic orders",
    ),
)
@click.argument("ranges", metavar="[TOPIC:PARTITION:START-END]...", nargs=-1)
@click.option("--from-time", metavar="ISO", help="Only records with this timestamp or a later one (UTC by default).")
@click.option("--to-time", metavar="ISO", help="Only records with a timestamp before this one.")
@click.option("--topic", "topics", multiple=True, help="Without ranges: only this input topic; may be repeated.")
@click.pass_obj
def command(
    invocation: Invocation,
    ranges: tuple[str, ...],
    from_time: str | None,
    to_time: str | None,
    topics: tuple[str, ...],
) -> int:
    """Handle a range of the input topics again.

    Calls the group's handler for the records of each range, from START to the offset before END, or for those with a
    timestamp between two times, or both. Without ranges it reads each log from the first such record to its end, since
    producers may set timestamps in any order.

    It runs next to the group: it doesn't join the group, and commits none of its offsets. A record that fails goes to
    the group's retry topics or to the dead letter topic. The idempotency key is the same as in the group.

    Ends with 0 when every record of the ranges is settled. If it is stopped, it ends with 1 and prints the command for
    the rest. If it dies, use the command that it logged last; it logs one every 10 s. A replay registers nothing, so
    only that command handles the records that were in flight.
    """
    settings = invocation.settings()
    configure_logging(settings.log, "replay")
    window = _window(from_time, to_time)
    if ranges:
        chosen = _in_the_log(settings, parse_ranges(ranges))
    elif window is not None:
        chosen = _since(settings, window, topics)
    else:
        raise ConfigurationError("give ranges, or --from-time and --to-time, or both")
    if not chosen:
        print("no records in between")
        return 0
    make_handlers_importable()
    _look_at_commits(settings, chosen)
    service = ReplayService(settings, chosen, window)
    try:
        ServiceProcess(lambda: service).run()
    finally:
        print(service.summary())
    return 0


def _look_at_commits(settings: Settings, ranges: Mapping[TopicPartition, range]) -> None:
    """Log how many offsets the group itself still handles, and refuse to take its later deliveries for new records.

    A share group has no offsets.
    """
    if settings.processor.source is SourceKind.SHARE:
        return
    found = committed_offsets(settings.kafka, settings.processor.group, ranges)
    said = [decode_metadata(each.metadata, each.offset) for each in found]
    if settings.processor.redeliver_to is not RedeliverTo.ORIGIN and any(
        each is not None and each.redeliver_to == RedeliverTo.ORIGIN.value for each in said
    ):
        raise ConfigurationError(
            "the ranges may have redelivered records, which would get new idempotency keys: the group's commits say "
            'redeliver_to=origin, and these settings don\'t. Set processor.redeliver_to = "origin" for the replay'
        )
    committed = {(each.topic, each.partition): max(0, each.offset) for each in found}
    ahead = sum(max(0, offsets.stop - max(offsets.start, committed[place])) for place, offsets in ranges.items())
    if ahead:
        log.warning("the group hasn't committed %d offsets of the ranges, and handles their records too", ahead)


def _in_the_log(settings: Settings, ranges: Mapping[TopicPartition, range]) -> dict[TopicPartition, range]:
    """Return the ranges if the log has all of them."""
    client = admin(settings.kafka)
    for topic, partitions in by_topic(ranges).items():
        chosen_topics(settings.processor, [topic], partitions)
        for place, (first, end) in log_ends(client, [topic], partitions).items():
            if ranges[place].start < first or ranges[place].stop > end:
                raise ConfigurationError(
                    f"the log of {place[0]}[{place[1]}] has the offsets {first}-{end}, the range is "
                    f"{ranges[place].start}-{ranges[place].stop}: give a range in the log"
                )
    return dict(ranges)


def _window(from_time: str | None, to_time: str | None) -> Window | None:
    if from_time is None and to_time is None:
        return None
    if from_time is None or to_time is None:
        raise ConfigurationError("give both --from-time and --to-time")
    window = Window(parse_time(from_time), parse_time(to_time))
    if window.from_ms >= window.to_ms:
        raise ConfigurationError(f"--from-time {from_time} isn't before --to-time {to_time}")
    return window


def _since(settings: Settings, window: Window, topics: tuple[str, ...]) -> dict[TopicPartition, range]:
    """Return the ranges in which each record of a window is, without empty ones.

    The broker finds the first record with a timestamp or a later one, so none before it is of the window.
    """
    client = admin(settings.kafka)
    ends = log_ends(client, chosen_topics(settings.processor, topics, ()), ())
    starts = landings(client, Target(window.from_ms), ends)
    ranges = {place: range(start.offset, ends[place][1]) for place, start in starts.items()}
    return {place: offsets for place, offsets in ranges.items() if offsets}
