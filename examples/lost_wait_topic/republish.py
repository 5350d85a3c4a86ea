"""Publishes open registrations of a lost wait topic, key, value and headers as they were, to the topic of their group.

Dry unless told to --send. Which ones is a condition on the table `wait`:

    python republish.py "wait_topic = 'waitreg.wait'"

They carry the lineage block, so their group counts the delivery on and sees topic, partition and offset of the first
delivery. The wait ID is a new one: see its README.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import psycopg
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from wait_registry.errors import DataError, WaitRegistryError
from wait_registry.kafka.clients import producer_config
from wait_registry.postgres.connection import connect_pooled
from wait_registry.records.headers import decode_headers_json, require_sendable_names
from wait_registry.records.lineage import Lineage, redelivery_headers
from wait_registry.records.topics import input_of, redelivery_topic
from wait_registry.settings.loading import load_settings
from wait_registry.settings.tree import Settings

# The tables hold the original headers; the block is made from the columns.
LINEAGE = """
original_topic, original_partition, original_offset, original_timestamp_ms, original_timestamp_type,
wait_expiration_uuid, wait_partition, wait_offset, consumer_group, instance, delivery + 1,
null, nullif(idempotency_key, wait_expiration_uuid)
"""
OPEN = f"""
select wait_topic, wait_partition, wait_offset, original_key, original_headers::text, body, {LINEAGE}
from wait where ({{}}) order by wait_topic, wait_partition, wait_offset
"""


class Outgoing(NamedTuple):
    """A record to redeliver: its target topic, its coordinates (for messages), and its content."""

    topic: str
    place: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def main(arguments: list[str] | None = None) -> int:
    """Show or publish what the condition chooses; 0 when all of it was acknowledged."""
    parser = argparse.ArgumentParser(description="Publish what was open in a lost wait topic; settings as for waitreg.")
    parser.add_argument("condition", help="SQL condition on the table wait")
    parser.add_argument("--to", metavar="TOPIC", help="instead of {original topic}.{group}.redeliver")
    parser.add_argument("--send", action="store_true", help="publish; without it they are only counted")
    given = parser.parse_args(arguments)
    settings = load_settings()
    chosen = list(choose(settings, OPEN.format(given.condition), given.to))
    for topic, count in sorted(Counter(record.topic for record in chosen).items()):
        print(f"{count} records for {topic}")
    if not chosen or not given.send:
        print("nothing published" if chosen else "nothing chosen")
        return 0
    sent = Sent()
    try:
        publish(settings, chosen, sent)
    finally:
        # However it ends: the next run must leave out what is published.
        unknown = len(chosen) - sent.acknowledged - len(sent.refused)
        print(f"{sent.acknowledged} published, {len(sent.refused)} refused, {unknown} without the broker's word")
        if unknown:
            print("look in the topic which of these it has, before you send them again")
        for place, error in sent.refused:
            print(f"{place}: {error}", file=sys.stderr)
    return 1 if sent.refused else 0


def choose(settings: Settings, question: str, to: str | None) -> Iterator[Outgoing]:
    """Yield what the question brings."""
    with connect_pooled(settings.postgres, application_name="republish") as connection:
        # The condition is the operator's own, typed by who may do all this in psql anyway.
        rows = connection.execute(question.encode())
        for topic, partition, offset, key, headers, body, *columns in rows:
            place, lineage = f"{topic}-{partition} offset {offset}", Lineage(*columns)
            try:
                originals = decode_headers_json(headers.encode())
                require_sendable_names(originals)
                again = redelivery_headers(originals, lineage)
            except DataError as error:
                raise DataError(f"{place}: {error}. Choose without it") from error
            group = str(lineage.group)
            goes_to = to or redelivery_topic(input_of(lineage.original_topic, group), group)
            yield Outgoing(goes_to, place, key, body, again)


class Sent:
    """The broker's word on each record so far: how many it acknowledged, which it refused."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.refused: list[tuple[str, KafkaError]] = []

    def heard(self, place: str, error: KafkaError | None) -> None:
        """Count one answer."""
        if error is None:
            self.acknowledged += 1
        else:
            self.refused.append((place, error))


def publish(settings: Settings, chosen: Iterable[Outgoing], sent: Sent) -> None:
    """Publish all and wait for the broker's word on each, however long it is away; Ctrl-C ends the wait."""
    # A topic that takes less than a batch would refuse every record in it.
    producer = Producer(producer_config(settings.kafka, **{"batch.num.messages": 1}))
    for record in chosen:

        def delivered(error: KafkaError | None, _: Message, place: str = record.place) -> None:
            sent.heard(place, error)

        while True:
            try:
                producer.produce(record.topic, record.value, record.key, headers=record.headers, on_delivery=delivered)
                break
            except BufferError:
                # The client's queue is full: the broker is slow or away.
                producer.poll(0.5)
        producer.poll(0)
    # Not flush(): without a limit it doesn't hear Ctrl-C.
    while len(producer):
        producer.poll(0.5)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (WaitRegistryError, psycopg.Error, KafkaException) as error:
        sys.exit(f"republish.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
