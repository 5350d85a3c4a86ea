"""What the processor writes beside first registrations: dead letters, tombstones, renewed registrations."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from processor.fault import Fault
from wait_registry.kafka.errors import kafka_failure

Report: TypeAlias = Callable[[Message], None]

ANY_PARTITION = -1


class Letter(NamedTuple):
    """One record to send; ``what`` names it in an error; ``report`` is called when the broker has acknowledged it."""

    what: str
    topic: str
    partition: int
    key: bytes | str | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    report: Report


class Outbox:
    """Sends letters in order; a refused one is never skipped, it ends the process (P8).

    Args:
        producer: shared with registration.
        fault: where a refusal is reported.
        monotonic: returns seconds of a clock that never steps.
    """

    def __init__(self, producer: Producer, fault: Fault, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._producer = producer
        self._fault = fault
        self._backlog: deque[Letter] = deque()
        self.unacknowledged = 0
        self._monotonic = monotonic
        self._progress_s = 0.0

    @property
    def full(self) -> bool:
        """Whether letters wait because the producer's queue is full: consume nothing then."""
        return bool(self._backlog)

    def waiting_s(self) -> float:
        """Return for how long no letter has been acknowledged although some wait for it, s; from any thread."""
        return max(0.0, self._monotonic() - self._progress_s) if self.unacknowledged else 0.0

    def send(self, letter: Letter) -> None:
        """Send a letter, now or as soon as the producer's queue has room."""
        if not self.unacknowledged:
            self._progress_s = self._monotonic()
        self.unacknowledged += 1
        if self._backlog or not self._produce(letter):
            self._backlog.append(letter)

    def send_backlog(self) -> None:
        """Send what has been waiting for room, as far as there is some."""
        while self._backlog and self._produce(self._backlog[0]):
            self._backlog.popleft()

    def _produce(self, letter: Letter) -> bool:
        try:
            self._producer.produce(
                letter.topic,
                letter.value,
                letter.key,
                letter.partition,
                partial(self._delivered, letter),
                headers=letter.headers,
            )
        except BufferError:
            return False
        except KafkaException as error:
            self.unacknowledged -= 1
            self._fault.report(kafka_failure(error, f"writing {letter.what} to {letter.topic}"))
        return True

    def _delivered(self, letter: Letter, error: KafkaError | None, message: Message) -> None:
        self.unacknowledged -= 1
        self._progress_s = self._monotonic()
        if error is None:
            letter.report(message)
        else:
            self._fault.report(kafka_failure(error, f"writing {letter.what} to {letter.topic}"))
