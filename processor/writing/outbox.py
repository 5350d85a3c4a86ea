"""What the processor writes, in order, as the producer's queue has space.

A topic that takes less than a batch refuses the batch, whatever its records are. So a refused record that may have been
in a batch with others is sent again alone, and only then the refusal is a verdict on it.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from processor.fault import Fault
from wait_registry.kafka.errors import kafka_failure

log = logging.getLogger(__name__)

Headers: TypeAlias = list[tuple[str, bytes | None]]

ANY_PARTITION = -1
TOO_LARGE: Final = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})


class Report(Protocol):
    """Takes the delivery report of a record; of a refusal without a message if it is a verdict on this record alone."""

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


@dataclass(eq=False)
class Queue:
    """Sends records in order, as the producer's queue has space."""

    producer: Producer

    def __post_init__(self) -> None:
        self._produce = self.producer.produce
        self._backlog: deque[Pending] = deque()

    def __len__(self) -> int:
        return len(self._backlog) + len(self.producer)

    @property
    def full(self) -> bool:
        """Whether records wait because the producer's queue is full: poll nothing then."""
        return bool(self._backlog)

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

    def send_backlog(self) -> None:
        """Send waiting records while the producer's queue has space."""
        waiting, self._backlog = self._backlog, deque()
        while waiting and not self._backlog:
            pending = waiting.popleft()
            if pending.report.wanted():
                self.put(*pending)
        self._backlog.extend(waiting)

    def poll(self) -> None:
        """Take what the broker has answered; send what waits for space."""
        self.producer.poll(0)
        self.send_backlog()


@dataclass(eq=False)
class Outbox(Queue):
    """Sends records in order; a refused outcome is never skipped, it ends the process (P8).

    Args:
        producer: sends records in batches.
        make_alone: makes a producer whose batches have one record each; called if a topic refuses a batch.
        batch_bytes: a record whose value is larger is alone in its batch.
        fault: where a refusal is reported.
        monotonic: returns seconds of a clock that never steps.
    """

    make_alone: Callable[[], Producer]
    batch_bytes: int
    fault: Fault
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        super().__post_init__()
        self._alone: Queue | None = None
        self._limited: set[str] = set()
        self.unacknowledged = 0
        self._progress_s = 0.0

    def __len__(self) -> int:
        return super().__len__() + (0 if self._alone is None else len(self._alone))

    @property
    def full(self) -> bool:
        """Whether records wait because a producer's queue is full: poll nothing then."""
        return bool(self._backlog) or (self._alone is not None and self._alone.full)

    def poll(self) -> None:
        """Take what the broker has answered; send what waits for space."""
        super().poll()
        if self._alone is not None:
            self._alone.poll()

    def put_alone(self, error: KafkaError, refused: Message, report: Report, headers: Headers) -> None:
        """Send a record again, in a batch of its own, unless it was alone in the batch that was refused.

        Args:
            error: why the batch was refused.
            refused: the record, as its report has it: without headers.
            report: takes the verdict on the record.
            headers: of the record.
        """
        topic, value = str(refused.topic()), refused.value()
        if len(value or b"") > self.batch_bytes:
            report(error, None)
            return
        if self._alone is None:
            self._alone = Queue(self.make_alone())
        partition = refused.partition()
        self._alone.put(
            topic, value, refused.key(), ANY_PARTITION if partition is None else partition,
            _Verdict(self._taken_alone, topic, report), headers,
        )  # fmt: skip

    def _taken_alone(self, topic: str) -> None:
        if topic in self._limited:
            return
        self._limited.add(topic)
        log.error(
            "topic %s refuses batches and takes their records one by one, which is slow: its max.message.bytes was "
            "lowered while this process runs. Raise it as `waitreg topics check` says",
            topic,
        )

    def waiting_s(self) -> float:
        """Return for how long no outcome was acknowledged although some are unacknowledged, s; from any thread."""
        return max(0.0, self.monotonic() - self._progress_s) if self.unacknowledged else 0.0

    def send(self, receipt: Receipt, key: bytes | str | None, value: bytes | None) -> None:
        """Send one outcome, to any partition."""
        self.expect(1)
        self.put(receipt.topic, value, key, ANY_PARTITION, receipt, receipt.headers)

    def expect(self, records: int) -> None:
        """Note that outcomes are put next, each with a receipt."""
        if not self.unacknowledged:
            self._progress_s = self.monotonic()
        self.unacknowledged += records

    def over(self) -> None:
        """Note that an outcome is acknowledged or refused."""
        self.unacknowledged -= 1
        self._progress_s = self.monotonic()

    def refused(self, receipt: Receipt, error: KafkaError) -> None:
        """Note one that the broker or the client refuses: the process must end."""
        self.over()
        self.fault.report(kafka_failure(error, f"writing {receipt.what} to {receipt.topic}"))


class _Verdict:
    """Takes the report on a record that was sent alone, and passes it on without the message if it is a refusal."""

    __slots__ = ("_report", "_taken", "_topic")

    def __init__(self, taken: Callable[[str], None], topic: str, report: Report) -> None:
        self._taken = taken
        self._topic = topic
        self._report = report

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """Take the report."""
        if error is None:
            self._taken(self._topic)
        self._report(error, message if error is None else None)

    def wanted(self) -> bool:
        """Return whether the record is still to be written."""
        return self._report.wanted()


@dataclass(slots=True, eq=False)
class Receipt:
    """Takes the delivery reports of tombstones, dead letters or retry records of one kind.

    Args:
        outbox: sends them.
        what: names such a record in an error.
        topic: where they are written.
        acknowledged: called with each record that the broker has acknowledged.
        headers: of each of these records.
        too_large: called if one is too large for the topic; without it, that ends the process like any refusal.
    """

    outbox: Outbox
    what: str
    topic: str
    acknowledged: Callable[[Message], None]
    headers: Headers
    too_large: Callable[[KafkaError], None] | None = None

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """Take one report (called by ``producer.poll``)."""
        if error is not None and message is not None and error.code() in TOO_LARGE:
            self.outbox.put_alone(error, message, self, self.headers)
        elif error is not None and self.too_large is not None and error.code() in TOO_LARGE:
            self.outbox.over()
            self.too_large(error)
        elif error is not None:
            self.outbox.refused(self, error)
        elif message is not None:
            self.outbox.over()
            self.acknowledged(message)

    def wanted(self) -> bool:
        """Return True: an outcome is always written."""
        return True
