"""Reads the topics from which the group gets records again, before its processors delete what they have committed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from tests.chaos.companion import Companion
from tests.chaos.history.history import Partition, topics_again
from tests.chaos.history.topics import partitions_of, reader
from tests.support.kafka_io import PASSING, ReadRecord, as_record
from wait_registry.settings.root import Settings

INTERVAL_S = 0.02
METADATA_S = 0.5
# On a busy machine, behind all that a run has written.
REST_S = 60.0


class Tap(Companion):
    """Reads retry and redelivery topics in a thread of its own, committed records only; a context manager.

    Attributes:
        records: what was read so far.
    """

    def __init__(self, settings: Settings) -> None:
        self.records: list[ReadRecord] = []
        self._topics = topics_again(settings)
        self._consumer = reader(settings.kafka.bootstrap_servers, "read_committed")
        self._read_to: dict[Partition, int] = {}
        self._asked_s = -METADATA_S
        super().__init__("tap", INTERVAL_S, self._read)

    def __exit__(self, *raised: Any) -> None:
        try:
            super().__exit__(*raised)
        finally:
            self._consumer.close()

    def _read(self) -> None:
        with suppress(KafkaException):
            self._learn_partitions()
        for message in self._consumer.consume(1000, 0.05):
            error = message.error()
            place = (message.topic(), message.partition())
            if error is None:
                self.records.append(as_record(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._read_to[place] = message.offset()
            elif not error.retriable() and error.code() not in PASSING:
                # Above all, that records were deleted before they were read here: then nothing can be said.
                raise KafkaException(error)

    def _learn_partitions(self) -> None:
        # Faults stop the broker, and redelivery topics come into being during the run.
        if time.monotonic() < self._asked_s + METADATA_S:
            return
        self._asked_s = time.monotonic()
        places = [(topic, number) for topic in self._topics for number in partitions_of(self._consumer, topic, 2.0)]
        new = [place for place in places if place not in self._read_to]
        if new:
            self._read_to |= dict.fromkeys(new, 0)
            self._consumer.incremental_assign([TopicPartition(*place, OFFSET_BEGINNING) for place in new])

    def read_to(self, ends: Mapping[Partition, int]) -> list[ReadRecord]:
        """Return all records, once those below these ends are read; raises TimeoutError."""
        until_s = time.monotonic() + REST_S
        while any(self._read_to.get(place, 0) < end for place, end in ends.items()):
            if time.monotonic() > until_s:
                raise TimeoutError(f"read {self._topics} to {self._read_to}, whose ends are {dict(ends)}")
            time.sleep(INTERVAL_S)
        return list(self.records)
