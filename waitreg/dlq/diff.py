"""`waitreg dlq diff`."""

from __future__ import annotations

from pathlib import Path

import click

from wait_registry.dead_letters.dead_letter import find
from wait_registry.dead_letters.difference import Content, difference
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import usable_settings
from wait_registry.kafka.log_reader import first_records
from wait_registry.kafka.message_headers import headers_of
from wait_registry.records.operation import Place
from wait_registry.settings.kafka import KafkaSettings
from waitreg.command import Command, Invocation
from waitreg.dlq.edit import bytes_of
from waitreg.read_tables import read_tables


@click.command(
    "diff",
    cls=Command,
    examples=(
        "waitreg dlq diff orders.dlq:0:17 orders.dlq:0:18",
        "waitreg dlq diff orders.dlq:0:17 --input",
        "waitreg dlq diff orders.dlq:0:17 --file body.json",
    ),
)
@click.argument("left", metavar="PLACE")
@click.argument("right", metavar="[PLACE]", required=False)
@click.option("--input", "with_input", is_flag=True, help="Compare with the record in the input topic.")
@click.option("--file", type=click.Path(path_type=Path), metavar="FILE", help="Compare the value with that of FILE.")
@click.pass_obj
def command(invocation: Invocation, left: str, right: str | None, with_input: bool, file: Path | None) -> int:
    """Show how two records differ: key, headers and value.

    Values are compared byte for byte, and JSON values field by field as well. Ends with 0 if there is no difference,
    and with 1 if there is one.
    """

    if (right is not None) + with_input + (file is not None) != 1:
        raise ConfigurationError("give a second PLACE, --input or --file: one of the three")
    settings = invocation.settings()
    with read_tables(settings, invocation.path, "the dead letter") as connection:
        dead_letter = find(connection, left)[0]
        other = dead_letter.content if right is None else find(connection, right)[0].content
    if file is not None:
        other = other._replace(value=bytes_of(file))
    elif with_input:
        other = read_record(settings.kafka, dead_letter.record())
    found = list(difference(dead_letter.content, other))
    for line in found:
        print(line)
    return 1 if found else 0


def read_record(kafka: KafkaSettings, place: Place) -> Content:
    """Return the key, headers and value of a record.

    Args:
        kafka: the cluster.
        place: of the record.

    Raises:
        ConfigurationError: the topic doesn't have it any more, or never had; no permission.
        TransientError: no answer within the limit for requests.
    """
    with usable_settings():
        found = first_records(kafka, "waitreg.dlq.diff", place.topic, {place.partition: place.offset})
    if place.partition not in found:
        raise TransientError(f"{place} can't be read: no answer within {kafka.request_timeout_s:g} s")
    message = found[place.partition]
    if message is None or message.offset() != place.offset:
        later = "has none after it" if message is None else f"continues at {message.offset()}"
        raise ConfigurationError(f"{place} isn't in its topic, which {later}: it can't be compared")
    return Content(message.key(), tuple(headers_of(message) or ()), message.value())
