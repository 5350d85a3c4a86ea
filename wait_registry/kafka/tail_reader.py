"""Reads the end of a partition, each time up to the log's end of that moment, past every open transaction."""

from __future__ import annotations

import time
from contextlib import closing
from typing import NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from wait_registry.clock import Clock
from wait_registry.errors import TransientError
from wait_registry.kafka.clients import Admin, consumer_config
from wait_registry.kafka.errors import kafka_failure
from wait_registry.kafka.positions import Isolation, end_offsets
from wait_registry.settings.kafka import KafkaSettings

POLL_S = 0.5
BATCH = 10_000
FIRST_PAUSE_S = 0.005
LONGEST_PAUSE_S = 0.5


class OpenTransaction(TransientError):
    """A transaction at the log's end remains open: what it holds may change what is decided, so do nothing."""


class LogPartition(NamedTuple):
    """A partition whose end is read; ``timeout_s`` limits each wait, ``reader`` is named to the broker."""

    kafka: KafkaSettings
    topic: str
    partition: int
    timeout_s: float
    reader: str

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Tail(Protocol):
    """What is made of the records from ``start`` on."""

    @property
    def start(self) -> int:
        """Return the first offset that counts."""

    def take(self, message: Message) -> None:
        """Take the next record."""


class TailReader:
    """Continues from an offset to the end of the log, as often as called."""

    def __init__(self, log: LogPartition, admin: Admin, clock: Clock, tail: Tail) -> None:
        """Prepare to start at the tail's start; nothing is read yet.

        Args:
            log: what to read.
            admin: asked for the log's end.
            clock: for deadlines.
            tail: receives the records.
        """
        self._log = log
        self._admin = admin
        self._clock = clock
        self._tail = tail
        self._position = tail.start
        self._consumer: Consumer | None = None

    def read_on(self) -> int:
        """Read up to the high watermark of this moment.

        Returns:
            That offset: everything below it has been seen.

        Raises:
            OpenTransaction: the last stable offset didn't reach it in time; skip the partition.
            TailTooLong: more than the tail holds; skip the partition.
            TransientError: the cluster can't be reached, doesn't deliver in time, or ends before the position.
            PermanentError: records after the position are gone.
        """
        deadline = self._clock.monotonic() + self._log.timeout_s
        end = self._end("read_uncommitted")
        if end < self._position:
            raise TransientError(
                f"{self._log} ends at {end}, before the position {self._position} of the tables: "
                "the topic has lost records or isn't the one that the sink read. Run `waitreg rebuild`"
            )
        if end > self._position:
            self._await_stable(end, deadline)
            self.read_to(end)
        return end

    def read_again(self, tail: Tail, end: int) -> None:
        """Read what another tail is to hold, from its start; errors as `read_on`.

        Args:
            tail: gets what is read.
            end: an offset that this reader has reached before.
        """
        with closing(TailReader(self._log, self._admin, self._clock, tail)) as again:
            again.read_to(end)

    def close(self) -> None:
        """Stop reading."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _end(self, isolation: Isolation) -> int:
        log = self._log
        return end_offsets(self._admin, log.topic, [log.partition], isolation)[log.partition]

    def _await_stable(self, end: int, deadline: float) -> None:
        pause_s = FIRST_PAUSE_S
        while (stable := self._end("read_committed")) < end:
            if self._clock.monotonic() > deadline:
                raise OpenTransaction(
                    f"a transaction has been open at offset {stable} of {self._log} for {self._log.timeout_s:g} s, "
                    f'the log ends at {end}. If it stays open: docs/runbook.md, "Transaction stays open"'
                )
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def read_to(self, end: int) -> None:
        """Read up to an offset that the log has reached, or past it; errors as `read_on`."""
        consumer = self._consumer or self._open()
        limit_s = self._log.timeout_s
        deadline = self._clock.monotonic() + limit_s
        while self._position < end:
            if self._clock.monotonic() > deadline:
                raise TransientError(
                    f"{self._log} delivers nothing for {limit_s:g} s at {self._position}, it should up to {end}"
                )
            first = consumer.poll(POLL_S)
            if first is not None:
                deadline = self._clock.monotonic() + limit_s
                for message in (first, *consumer.consume(BATCH, 0)):
                    self._take(message)

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is None:
            self._tail.take(message)
            self._position = message.offset() + 1
        elif error.code() == KafkaError._PARTITION_EOF:
            # Where transaction markers follow the last record, only this event reports the end behind them.
            self._position = max(self._position, message.offset())
        else:
            raise kafka_failure(error, f"reading {self._log} from {self._position}")

    def _open(self) -> Consumer:
        self._consumer = Consumer(
            consumer_config(
                self._log.kafka,
                **{
                    # The client requires a group; this consumer never joins it and never commits.
                    "group.id": self._log.reader,
                    "enable.partition.eof": True,
                    "fetch.wait.max.ms": 20,
                    "queued.min.messages": 20_000,
                    "queued.max.messages.kbytes": 16_384,
                },
            )
        )
        try:
            self._consumer.assign([TopicPartition(self._log.topic, self._log.partition, self._position)])
        except KafkaException as error:
            raise kafka_failure(error, f"reading {self._log}") from error
        return self._consumer
