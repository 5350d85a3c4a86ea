"""What is asked of the executor of a job: to pause, or to end."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from wait_registry.errors import TransientError
from wait_registry.kafka.clients import producer_config, usable_settings
from wait_registry.kafka.errors import kafka_failure
from wait_registry.records.operation import Changed, State, encode_event
from wait_registry.settings.root import Settings


def change(settings: Settings, job: str, state: State, by: str, reason: str) -> None:
    """Ask the executor of a job to pause or to end, which it does before its next chunk.

    Args:
        settings: of the cluster.
        job: which one.
        state: the new state.
        by: who wants it.
        reason: why.

    Raises:
        ConfigurationError: the broker refuses it.
        TransientError: the broker doesn't answer.
    """
    refused: list[KafkaError] = []

    def heard(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error)

    timeout_s = settings.kafka.request_timeout_s
    with usable_settings():
        producer = Producer(producer_config(settings.kafka, **{"message.timeout.ms": int(timeout_s * 1000)}))
    value = encode_event(Changed(job=job, state=state, by=by, reason=reason))
    producer.produce(settings.operations.topic, value, job.encode(), partition=0, on_delivery=heard)
    doing = f"asking that job {job} be {state.value}"
    if producer.flush(timeout_s + 1):
        raise TransientError(f"{doing} failed: no answer within {timeout_s:g} s; it may arrive all the same")
    if refused:
        raise kafka_failure(KafkaException(refused[0]), doing)
