"""What a poll returned: the records by partition, and errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message

from processor.fault import Fault
from processor.intake.assigned_log import AssignedLog
from wait_registry.errors import PermanentError
from wait_registry.kafka.errors import is_transient, kafka_failure
from wait_registry.kafka.outside_log import REWIND, partitions_text
from wait_registry.records.topics import TopicPartition

log = logging.getLogger(__name__)

SET_POSITION = f"stop every processor of the group, run `{REWIND}`, and start again"
_OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


def position_error(
    owner: AssignedLog, message: Message, others: Collection[TopicPartition] = (), what_to_do: str = SET_POSITION
) -> PermanentError:
    """Return the error of a position that isn't in its log.

    Args:
        owner: the log.
        message: what the client returned instead of a record.
        others: partitions of which the same is true.
        what_to_do: completes "find out which ones, then".
    """
    offset = message.offset() if owner.position < 0 else owner.position
    more = f" The same holds for {partitions_text(others)}." if others else ""
    return PermanentError(
        f"the position {offset} of {owner!r} is not in the log (deleted by retention, or the topic was recreated): "
        f"{message.error().str()}.{more} Records may be lost: find out which ones, then {what_to_do}"
    )


@dataclass(slots=True)
class PolledMessages:
    """Sorts what the client returns; an error that won't pass ends the process.

    Args:
        group: names the consumer in errors.
        assigned: the logs of the assigned partitions, whose positions it moves.
        fault: where such an error is reported.
        position_gone: called with the log of a partition whose position isn't in it, and with the message that says so;
            reports a `position_error`, unless it finds out that nothing is lost.
        passing: codes of errors that are logged alone.
    """

    group: str
    assigned: Mapping[TopicPartition, AssignedLog]
    fault: Fault
    position_gone: Callable[[AssignedLog, Message], None] | None = None
    passing: Container[int] = ()

    def sort(self, messages: list[Message]) -> dict[TopicPartition, list[Message]]:
        """Return the records of one poll by partition, and report its errors."""
        by_partition: dict[TopicPartition, list[Message]] = {}
        topic, partition, owner, position = None, None, None, 0
        for message in messages:
            error = message.error()
            # The client returns them partition by partition, so this is rarely another one.
            if error is not None or message.partition() != partition or message.topic() != topic:
                if owner is not None:
                    owner.polled_below(position)
                if error is not None:
                    topic, partition, owner = None, None, None
                    self._report_error(error, message)
                    continue
                topic, partition = message.topic(), message.partition()
                owner = self.assigned.get((topic, partition))
                if owner is not None:
                    run, position = by_partition.setdefault(owner.place, []), owner.position
            offset = message.offset()
            # One call of consume() may hold records of a partition that a callback within the call has released.
            if owner is None or offset < position:
                continue
            position = offset + 1
            run.append(message)
        if owner is not None:
            owner.polled_below(position)
        return {place: run for place, run in by_partition.items() if run}

    def _report_error(self, error: KafkaError, message: Message) -> None:
        code = error.code()
        where = f"as group {self.group}" if message.topic() is None else f"{message.topic()}[{message.partition()}]"
        owner = self.assigned.get((message.topic(), message.partition()))
        if code == KafkaError._PARTITION_EOF:
            if owner is not None:
                owner.reached_end(message.offset())
        elif code in _OUT_OF_RANGE:
            # The client passes on what answers a fetch of an earlier assignment.
            if owner is None or 0 <= message.offset() < owner.position:
                log.info("consumer: ignored for %s, which was given up: %s", where, error.str())
            elif self.position_gone is None:
                self.fault.report(position_error(owner, message))
            else:
                self.position_gone(owner, message)
        elif is_transient(error) or code == KafkaError._MAX_POLL_EXCEEDED or code in self.passing:
            log.warning("consumer: %s (%s)", error.str(), error.name())
        else:
            self.fault.report(kafka_failure(error, f"consuming {where}"))
