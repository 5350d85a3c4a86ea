"""Relations between settings: pure checks that yield each contradiction, with the numbers and the fix."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final, Literal

from wait_registry.diagnosis import Diagnosis, error, log_warnings, refuse_errors, warning
from wait_registry.records.dead_letter import DEAD_LETTER_EXTRA_BYTES
from wait_registry.records.wait_record import RegistrationMode
from wait_registry.settings.alerts import alert_problems
from wait_registry.settings.contradictions import more_than, server_problems
from wait_registry.settings.grpc import grpc_problems
from wait_registry.settings.http import http_problems
from wait_registry.settings.kafka import kafka_problems
from wait_registry.settings.processor import (
    AUTO,
    AssignmentStrategy,
    GroupProtocol,
    ProcessorSettings,
    ordering_problems,
    share_problems,
)
from wait_registry.settings.routes import route_problems
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.sweeper import SweeperKind
from wait_registry.settings.topic_relations import topic_problems
from wait_registry.settings.tree import Settings, unresolved_placeholders

Service = Literal["processor", "sink", "sweeper"]

log = logging.getLogger(__name__)

# Of librdkafka, and of the broker for the group protocol 'consumer'.
DEFAULT_SESSION_S: Final = 45.0
SESSION_SHARE: Final = 4
# Of librdkafka. The other half of it is left to the last commit.
DEFAULT_POLL_S: Final = 300.0
POLL_SHARE: Final = 2


def require_relations(settings: Settings, service: Service) -> None:
    """Refuse settings that contradict each other, and log a warning about unwise ones.

    Raises:
        ConfigurationError: names every contradiction, the numbers behind it and what to change.
    """
    problems = relation_problems(settings, service)
    log_warnings(problems, log)
    refuse_errors(problems)


def relation_problems(settings: Settings, service: Service) -> list[Diagnosis]:
    """List the contradictions among the settings that this service uses."""
    problems = [*kafka_problems(settings.kafka), *topic_problems(settings)]
    if service == "sink":  # which traces and produces nothing
        return [*problems, *_sink_problems(settings)]
    problems += _queue_problems(settings)
    return [*problems, *(_processor_problems if service == "processor" else _sweeper_problems)(settings)]


def steady_prefetch(processor: ProcessorSettings) -> int:
    """Return how many records may be registered and not settled while handlers are slow.

    The allowance for fast handlers (0.2 s of the completion rate) isn't included: it shrinks with the rate, and a
    record that was registered too early is registered again before its first attempt.
    """
    slots = processor.least_in_flight
    return min(2 * slots + 16, max(processor.prefetch_max, slots))


def least_ttl_s(settings: Settings) -> float:
    """Return what ``processor.ttl_s`` must exceed, s: (1 + prefetch / N) x one record's longest work, and allowances.

    One record's longest work is all attempts up to their limit, and the pauses between them.
    """
    processor = settings.processor
    rounds = 1 + steady_prefetch(processor) / processor.least_in_flight
    work_s = processor.handler_timeout_s * processor.max_attempts + processor.longest_backoffs_s
    return rounds * work_s + settings.wait.skew_allowance_s + processor.margin_s


def _processor_problems(settings: Settings) -> Iterator[Diagnosis]:
    processor = settings.processor
    for name, value in (("group", processor.group), ("topics", processor.topics)):
        if not value:
            yield error(f"processor.{name} isn't set; the processor needs it")
    yield from route_problems(processor.routes, processor.topics, processor.handler)
    yield from _expiry_problems(settings)
    yield from _registration_problems(settings)
    yield from ordering_problems(processor)
    yield from _limit_problems(settings)
    yield from _rebalance_problems(settings)
    yield from share_problems(processor)
    if processor.group_protocol is GroupProtocol.CONSUMER and processor.assignment_strategy is not (
        AssignmentStrategy.COOPERATIVE_STICKY
    ):
        yield error(
            f"processor.assignment_strategy is {processor.assignment_strategy.value}, but with "
            "processor.group_protocol=consumer the broker assigns (KIP-848): remove one of the two"
        )
    registry = processor.schema_registry
    if registry.url:
        yield from server_problems("processor.schema_registry", registry.url, registry.username, registry.password)
    both = sorted(set(processor.http.retry_statuses) & set(processor.http.discard_statuses))
    if both:
        yield error(
            f"HTTP statuses {both} are in processor.http.retry_statuses and in discard_statuses: remove one of them"
        )
    yield from http_problems(processor.http)
    yield from grpc_problems(processor.grpc, processor.handler_names)


def _expiry_problems(settings: Settings) -> Iterator[Diagnosis]:
    processor = settings.processor
    first_s, longest_s = processor.backoff_initial_s, processor.backoff_max_s
    if first_s > longest_s:
        yield more_than("processor.backoff_initial_s", first_s, "processor.backoff_max_s", longest_s, unit=" s")
    least_s = least_ttl_s(settings)
    if processor.registration is RegistrationMode.OFF or processor.ttl_s > least_s:
        return
    prefetch = steady_prefetch(processor)
    least_name = "max_in_flight_min" if processor.max_in_flight == AUTO else "max_in_flight"
    yield error(
        f"processor.ttl_s = {processor.ttl_s:g} s is too short: a record may be in progress for {least_s:.1f} s\n"
        f"  Fix: set processor.ttl_s > {least_s:.1f}, or lower handler_timeout_s, max_attempts or margin_s\n"
        f"  {least_s:.1f} = (1 + prefetch {prefetch} / {least_name} {processor.least_in_flight}) x (handler_timeout_s "
        f"{processor.handler_timeout_s:g} x max_attempts {processor.max_attempts} + pauses "
        f"{processor.longest_backoffs_s:.1f}) + wait.skew_allowance_s {settings.wait.skew_allowance_s:g} "
        f"+ margin_s {processor.margin_s:g}"
    )


def _registration_problems(settings: Settings) -> Iterator[Diagnosis]:
    processor = settings.processor
    after_s, ttl_s = processor.register_after_s, processor.ttl_s
    if processor.registration is not RegistrationMode.DEFERRED:
        return
    # A process learns within a session that a partition was taken from it, and must not register records of it then.
    session_s = _librdkafka_s(settings, "session.timeout.ms", DEFAULT_SESSION_S)
    if after_s * SESSION_SHARE > session_s:
        yield error(
            f"processor.register_after_s is {after_s:g} s, more than a quarter of the consumer's session timeout = "
            f"{session_s:g} s. Set it to {session_s / SESSION_SHARE:g} or less, or raise "
            "kafka.librdkafka.session.timeout.ms"
        )
    if after_s >= ttl_s:
        yield error(
            f"processor.register_after_s is {after_s:g} s, not less than processor.ttl_s = {ttl_s:g} s, which counts "
            "from the registration. Lower the first or raise the second"
        )


def _rebalance_problems(settings: Settings) -> Iterator[Diagnosis]:
    flush_s, poll_s = (
        settings.processor.flush_timeout_s,
        _librdkafka_s(settings, "max.poll.interval.ms", DEFAULT_POLL_S),
    )
    if flush_s * POLL_SHARE > poll_s:
        yield error(
            f"processor.flush_timeout_s is {flush_s:g} s, more than half of kafka.librdkafka.max.poll.interval.ms = "
            f"{poll_s:g} s, so the broker could give a partition away while its calls end, and they would run twice at "
            f"once. Set the first to {poll_s / POLL_SHARE:g} or less, or raise the second"
        )


def _librdkafka_s(settings: Settings, name: str, default_s: float) -> float:
    given = str(settings.kafka.librdkafka.get(name, ""))
    return int(given) / 1000 if given.isdecimal() else default_s


def least_uncommitted_max(processor: ProcessorSettings) -> int:
    """Return the least ``processor.uncommitted_max``: all worker slots are busy while their records are committed."""
    return 2 * processor.most_in_flight + 20


def _limit_problems(settings: Settings) -> Iterator[Diagnosis]:
    processor, wait = settings.processor, settings.wait
    slots, size = processor.most_in_flight, wait.max_message_bytes
    name = "processor.max_in_flight"
    if processor.max_in_flight == AUTO:
        name = "processor.max_in_flight_max"
        if processor.least_in_flight > slots:
            yield more_than("processor.max_in_flight_min", processor.least_in_flight, name, slots)
    if slots > processor.prefetch_max:
        why = ", so slots would never be filled"
        yield more_than(name, slots, "processor.prefetch_max", processor.prefetch_max, why)
    if size > processor.prefetch_max_bytes:
        cap = "processor.prefetch_max_bytes"
        yield more_than("wait.max_message_bytes", size, cap, processor.prefetch_max_bytes, unit=" bytes")
    least = least_uncommitted_max(processor)
    if processor.uncommitted_max < least:
        yield error(
            f"processor.uncommitted_max is {processor.uncommitted_max}, less than 2 x {name} + 20 = "
            f"{least}, so a partition could not keep all worker slots busy. Set it to {least} or more, or lower "
            "max_in_flight"
        )


def _queue_problems(settings: Settings) -> Iterator[Diagnosis]:
    # If the queue is too small for a record, the client reports it full even when it is empty.
    room = settings.kafka.producer_queue_bytes
    record = settings.wait.max_message_bytes + DEAD_LETTER_EXTRA_BYTES
    if room is not None and room < record:
        yield error(
            f"kafka.librdkafka.queue.buffering.max.kbytes is {room // 1024}, less than one record of "
            f"wait.max_message_bytes with its dead letter's headers = {record} bytes, so it could never be sent: "
            f"set the first to {-(-record // 1024)} or more, or lower wait.max_message_bytes"
        )


def _sink_problems(settings: Settings) -> Iterator[Diagnosis]:
    template, sink = settings.dead_letter.topic, settings.sink
    # Alongside a Connect sink, ours reads the operations topic alone.
    if sink.kind is SinkKind.SPARK and not sink.dead_letter_topics and unresolved_placeholders(settings):
        yield error(
            f"dead_letter.topic is {template!r}, whose placeholders the sink can't resolve: list the topics "
            "in sink.dead_letter_topics"
        )
    # A position may be at most half of delete.retention.ms old; a quarter leaves room for one missed heartbeat.
    longest_s = settings.wait.delete_retention_ms / 1000 / 4
    if sink.idle_progress_s > longest_s:
        yield warning(
            f"sink.idle_progress_s is {sink.idle_progress_s:g} s, more than a quarter of wait.delete_retention_ms = "
            f"{longest_s:g} s: the sweeper may refuse the tables as too old; lower it",
        )


def _sweeper_problems(settings: Settings) -> Iterator[Diagnosis]:
    if settings.sweeper.kind is SweeperKind.CONNECT:
        yield error(
            "sweeper.kind is connect: a Kafka Connect source exports expired records, and a sweeper would export them "
            "a second time. Don't start `waitreg sweeper`; or delete the connectors expired.source "
            "and expired.tombstones and set sweeper.kind to spark"
        )
    # A chunk is one transaction in the producer's queue, with a dead letter and a tombstone per row.
    room, chunk_bytes = settings.kafka.producer_queue_bytes, settings.sweeper.chunk_bytes
    if room is not None and room < 2 * chunk_bytes:
        yield error(
            f"kafka.librdkafka.queue.buffering.max.kbytes is {room // 1024}, less than twice sweeper.chunk_bytes = "
            f"{chunk_bytes} bytes: a chunk could never be sent; set the first to {-(-2 * chunk_bytes // 1024)} or "
            "more, or lower the second"
        )
    queue, chunk_rows = settings.kafka.librdkafka.get("queue.buffering.max.messages"), settings.sweeper.chunk_rows
    if str(queue).isdecimal() and int(str(queue)) < 2 * chunk_rows:
        yield error(
            f"kafka.librdkafka.queue.buffering.max.messages is {queue}, less than twice sweeper.chunk_rows = "
            f"{chunk_rows}: a chunk could never be sent; raise the first or lower the second"
        )
    yield from alert_problems(settings.alerts)
