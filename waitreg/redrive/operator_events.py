"""What persons ask for, as single events of the operations topic: of a job's executor, or to see what is hidden."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from wait_registry.errors import TransientError
from wait_registry.kafka.clients import flush, producer_config, usable_settings
from wait_registry.kafka.errors import kafka_failure
from wait_registry.records.operation import (
    Approved,
    Changed,
    Event,
    Place,
    RateChanged,
    Requested,
    Revealed,
    State,
    encode_event,
)
from wait_registry.settings.tree import Settings
from waitreg.redrive.request import Asker


def change(settings: Settings, job: str, state: State, asker: Asker, reason: str) -> None:
    """Ask the executor of a job to pause or to end, which it does before its next chunk.

    Args:
        settings: of the cluster.
        job: which one.
        state: the new state.
        asker: who wants it.
        reason: why.

    Raises:
        ConfigurationError: the broker refuses it.
        TransientError: the broker doesn't answer.
    """
    event = Changed(job=job, state=state, by=asker.by, authenticated=asker.authenticated, reason=reason)
    write_event(settings, job, event, f"asking that job {job} be {state.value}")


def write_request(settings: Settings, job: Requested) -> None:
    """Write the request of a job that begins later, perhaps when it is approved; errors as `change`."""
    write_event(settings, job.job, job, f"asking for job {job.job}")


def approve(settings: Settings, job: str, approver: Asker, reason: str) -> None:
    """Approve a job; call `require_awaiting` first.

    Args:
        settings: of the cluster.
        job: which one.
        approver: who approves it.
        reason: why.

    Raises:
        ConfigurationError: the broker refuses it.
        TransientError: the broker doesn't answer.
    """
    event = Approved(job=job, reason=reason, **approver._asdict())
    write_event(settings, job, event, f"approving job {job}")


def change_rate(settings: Settings, job: str, rate: float, asker: Asker, reason: str) -> None:
    """Ask the executor of a job for another rate, which it has from its next chunk on.

    Args:
        settings: of the cluster.
        job: which one.
        rate: records per second, as `require_rate` allows it.
        asker: who wants it.
        reason: why.

    Raises:
        ConfigurationError: the broker refuses it.
        TransientError: the broker doesn't answer.
    """
    event = RateChanged(job=job, rate=rate, reason=reason, **asker._asdict())
    write_event(settings, job, event, f"changing the rate of job {job}")


def record_reveal(settings: Settings, place: Place, group: str | None, asker: Asker, reason: str) -> None:
    """Write that a person is shown what is hidden of a dead letter; show nothing before this has returned.

    Args:
        settings: of the cluster.
        place: of the dead letter.
        group: its consumer group.
        asker: who is shown it.
        reason: why.

    Raises:
        ConfigurationError: the broker refuses it.
        TransientError: the broker doesn't answer.
    """
    event = Revealed(place=place, group=group, reason=reason, **asker._asdict())
    write_event(settings, str(place), event, f"recording that {place} is revealed")


def write_event(settings: Settings, key: str, event: Event, doing: str) -> None:
    """Write an event by itself, and wait until the broker has it.

    Args:
        settings: of the cluster.
        key: of the record: the job, or the place of a dead letter.
        event: the event.
        doing: what it does, for messages.

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
    producer.produce(settings.operations.topic, encode_event(event), key.encode(), partition=0, on_delivery=heard)
    try:
        waiting = flush(producer, timeout_s + 1)
    except KafkaException as error:
        raise kafka_failure(error, doing) from error
    if waiting:
        raise TransientError(f"{doing} failed: no answer within {timeout_s:g} s; it may arrive all the same")
    if refused:
        raise kafka_failure(KafkaException(refused[0]), doing)
