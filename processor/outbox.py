"""What the processor writes in addition to first registrations: dead letters, tombstones, renewals."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from processor.ending import Fault
from wait_registry.kafka.errors import kafka_failure

Report: TypeAlias = Callable[[Message], None]
Headers: TypeAlias = list[tuple[str, bytes | None]]

ANY_PARTITION = -1


class Receipt:
    """Takes the delivery reports of records of one kind.

    Args:
        outbox: sends them.
        what: names such a record in an error.
        topic: where they are written.
        report: called with each record that the broker has acknowledged.
    """

    __slots__ = ("_outbox", "_report", "topic", "what")

    def __init__(self, outbox: Outbox, what: str, topic: str, report: Report) -> None:
        self._outbox = outbox
        self.what = what
        self.topic = topic
        self._report = report

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Take one report (called by ``producer.poll``)."""
        if error is None:
            self._outbox.over()
            self._report(message)
        else:
            self._outbox.refused(self, error)


class Pending(NamedTuple):
    """One record that waits for space in the producer's queue."""

    receipt: Receipt
    partition: int
    key: bytes | str | None
    value: bytes | None
    headers: Headers


class Outbox:
    """Sends records in order; a refused record is never skipped, it ends the process (P8).

    Args:
        producer: shared with registration.
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
        """Return for how long no record was acknowledged although some are unacknowledged, s; from any thread."""
        return max(0.0, self._monotonic() - self._progress_s) if self.unacknowledged else 0.0

    def receipt(self, what: str, topic: str, report: Report) -> Receipt:
        """Return the receipt of records of one kind, or of a single record; see `Receipt`."""
        return Receipt(self, what, topic, report)

    def send(
        self, receipt: Receipt, partition: int, key: bytes | str | None, value: bytes | None, headers: Headers
    ) -> None:
        """Send a record, now or as soon as the producer's queue has space."""
        if not self.unacknowledged:
            self._progress_s = self._monotonic()
        self.unacknowledged += 1
        if self._backlog or not self._produced(receipt, partition, key, value, headers):
            self._backlog.append(Pending(receipt, partition, key, value, headers))

    def send_backlog(self) -> None:
        """Send waiting records while the producer's queue has space."""
        while self._backlog and self._produced(*self._backlog[0]):
            self._backlog.popleft()

    def over(self) -> None:
        """Note that a record is acknowledged or refused."""
        self.unacknowledged -= 1
        self._progress_s = self._monotonic()

    def refused(self, receipt: Receipt, error: KafkaError | KafkaException) -> None:
        """Note a record that the broker or the client refuses: the process must end."""
        self.over()
        self._fault.report(kafka_failure(error, f"writing {receipt.what} to {receipt.topic}"))

    def _produced(
        self, receipt: Receipt, partition: int, key: bytes | str | None, value: bytes | None, headers: Headers
    ) -> bool:
        try:
            self._produce(receipt.topic, value, key, partition, receipt, headers=headers)
        except BufferError:
            return False
        except KafkaException as error:
            self.refused(receipt, error)
        return True
