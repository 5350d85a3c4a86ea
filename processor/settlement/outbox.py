"""What the processor writes, in order, as the producer's queue has space."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from processor.service.ending import Fault
from wait_registry.kafka.errors import kafka_failure

Acknowledged: TypeAlias = Callable[[Message], None]
Headers: TypeAlias = list[tuple[str, bytes | None]]

TooLarge: TypeAlias = Callable[[KafkaError], None]

ANY_PARTITION = -1
TOO_LARGE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})


class Report(Protocol):
    """Takes the delivery report of a record; without a message if the client refused to send it."""

    def __call__(self, error: KafkaError | None, message: Message | None) -> None: ...

    def wanted(self) -> bool:
        """Return whether a record that still waits is to be sent."""


class Pending(NamedTuple):
    """One record that waits for space in the producer's queue."""

    topic: str
    value: bytes | None
    key: bytes | str | None
    partition: int
    report: Report
    headers: Headers


class Outbox:
    """Sends records in order; a refused outcome is never skipped, it ends the process (P8).

    Args:
        producer: the only one of the process.
        fault: where a refusal is reported.
        monotonic: returns seconds of a clock that never steps.
    """

    def __init__(self, producer: Producer, fault: Fault, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._produce = producer.produce
        self._fault = fault
        self._backlog: deque[Pending] = deque()
        self.unacknowledged = 0
        self._monotonic = monotonic
        self._progress_s = 0.0

    @property
    def full(self) -> bool:
        """Whether records wait because the producer's queue is full: poll nothing then."""
        return bool(self._backlog)

    def waiting_s(self) -> float:
        """Return for how long no outcome was acknowledged although some are unacknowledged, s; from any thread."""
        return max(0.0, self._monotonic() - self._progress_s) if self.unacknowledged else 0.0

    def put(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | str | None,
        partition: int,
        report: Report,
        headers: Headers,
    ) -> None:
        """Send a record, now or as soon as the producer's queue has space."""
        if not self._backlog:
            try:
                self._produce(topic, value, key, partition, report, headers=headers)
                return
            except BufferError:
                pass  # there is no space
            except KafkaException as error:
                report(error.args[0], None)
                return
        self._backlog.append(Pending(topic, value, key, partition, report, headers))

    def receipt(self, what: str, topic: str, acknowledged: Acknowledged, too_large: TooLarge | None = None) -> Receipt:
        """Return the receipt of outcomes of one kind, or of a single one; see `Receipt`."""
        return Receipt(self, what, topic, acknowledged, too_large)

    def expect(self, records: int) -> None:
        """Note that outcomes are put next, each with a receipt."""
        if not self.unacknowledged:
            self._progress_s = self._monotonic()
        self.unacknowledged += records

    def send_backlog(self) -> None:
        """Send waiting records while the producer's queue has space."""
        waiting, self._backlog = self._backlog, deque()
        while waiting and not self._backlog:
            pending = waiting.popleft()
            if pending.report.wanted():
                self.put(*pending)
        self._backlog.extend(waiting)

    def over(self) -> None:
        """Note that an outcome is acknowledged or refused."""
        self.unacknowledged -= 1
        self._progress_s = self._monotonic()

    def refused(self, receipt: Receipt, error: KafkaError) -> None:
        """Note one that the broker or the client refuses: the process must end."""
        self.over()
        self._fault.report(kafka_failure(error, f"writing {receipt.what} to {receipt.topic}"))


class Receipt:
    """Takes the delivery reports of tombstones, dead letters or retry records of one kind.

    Args:
        outbox: sends them.
        what: names such a record in an error.
        topic: where they are written.
        acknowledged: called with each record that the broker has acknowledged.
        too_large: called if one is too large for the topic; without it, that ends the process like any refusal.
    """

    __slots__ = ("_acknowledged", "_outbox", "_too_large", "topic", "what")

    def __init__(
        self, outbox: Outbox, what: str, topic: str, acknowledged: Acknowledged, too_large: TooLarge | None
    ) -> None:
        self._outbox = outbox
        self._too_large = too_large
        self.what = what
        self.topic = topic
        self._acknowledged = acknowledged

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """Take one report (called by ``producer.poll``)."""
        if error is not None and self._too_large is not None and error.code() in TOO_LARGE:
            self._outbox.over()
            self._too_large(error)
        elif error is not None:
            self._outbox.refused(self, error)
        elif message is not None:
            self._outbox.over()
            self._acknowledged(message)

    def wanted(self) -> bool:
        """Return True: an outcome is always written."""
        return True
