"""Waiting for the answer of one administrative request."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from wait_registry.clock import Clock, SystemClock
from wait_registry.errors import ConfigurationError, TransientError, WaitRegistryError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.errors import is_refused_topic, is_unknown_topic, kafka_failure
from wait_registry.outage import through_outage

T = TypeVar("T")

DEFAULT_TIMEOUT_S = 15.0
RETRY_PAUSE_S = 0.1


def timeout_of(admin: AdminClient) -> float:
    """Return the request limit of this client, s."""
    return admin.request_timeout_s if isinstance(admin, Admin) else DEFAULT_TIMEOUT_S


def answer(admin: AdminClient, future: Future[T], doing: str) -> T:
    """Wait for an administrative request.

    Args:
        admin: the client that sent it.
        future: what the client returned.
        doing: the operation, as it reads in "... failed".

    Returns:
        The request's result.

    Raises:
        WaitRegistryError: as `wait_registry.kafka.errors.kafka_failure` decides; also ConfigurationError if the
            request timed out because the broker refuses the client's credentials.
    """

    def wait() -> T:
        try:
            return future.result(timeout_of(admin) + 5)
        except FutureTimeoutError as error:
            if isinstance(admin, Admin):
                admin.request_unanswered()
            raise TransientError(f"{doing} failed: no answer within {timeout_of(admin):g} s") from error

    return answered(admin, wait, doing)


def answered(admin: AdminClient, request: Callable[[], T], doing: str) -> T:
    """Send a request that waits for its answer itself, within the limit of `timeout_of`; otherwise as `answer`."""
    if isinstance(admin, Admin):
        admin.begin_request()
    try:
        result = request()
    except KafkaException as error:
        # A future keeps its error, whose traceback would keep the waiting frames and the client in a cycle.
        raise _failure(admin, error, doing) from error.with_traceback(None)
    if isinstance(admin, Admin):
        admin.end_request()
    return result


def answers_of_existing(
    admin: AdminClient, futures: Mapping[Any, Future[T]], doing: str, optional: Collection[str] = ()
) -> dict[str, T]:
    """Wait for one request per topic (or resource), as `answer` does.

    Args:
        admin: the client that sent them.
        futures: what the client returned.
        doing: the operation, as it reads before the name of a topic.
        optional: topics that the broker may refuse to this user.

    Returns:
        The answers by topic, without topics that don't exist and optional ones that were refused.

    Raises:
        WaitRegistryError: as `answer`.
    """
    found: dict[str, T] = {}
    for asked, future in futures.items():
        name = str(getattr(asked, "name", asked))
        try:
            found[name] = answer(admin, future, f"{doing} {name}")
        except ConfigurationError as error:
            if not (is_unknown_topic(error) or (name in optional and is_refused_topic(error))):
                raise
    return found


def persistently(admin: AdminClient, request: Callable[[], T], clock: Clock | None = None) -> T:
    """Repeat a request whose failures pass within moments, such as a leader election.

    Args:
        admin: the client that ``request`` uses; its limit also bounds the repetitions.
        request: sends and waits, raising what `answer` raises.
        clock: measures the limit; by default this host's.

    Returns:
        What ``request`` returned.

    Raises:
        TransientError: it still fails when the limit is reached.
        WaitRegistryError: any other failure, at once.
    """
    monotonic = (clock or SystemClock()).monotonic
    deadline = monotonic() + timeout_of(admin)
    return through_outage(request, lambda _: RETRY_PAUSE_S if monotonic() < deadline else None, admin.poll)


def _failure(admin: AdminClient, error: KafkaException, doing: str) -> WaitRegistryError:
    cause = error.args[0]
    timed_out = isinstance(cause, KafkaError) and cause.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
    if not timed_out or not isinstance(admin, Admin):
        return kafka_failure(error, doing)
    admin.poll(0)  # serves the error callback
    if admin.refusal is not None:
        return kafka_failure(admin.refusal, doing)
    failure = TransientError(f"{doing} failed: {cause.str()} ({cause.name()}){_what_it_may_be(admin)}")
    admin.request_unanswered()
    return failure


def _what_it_may_be(admin: Admin) -> str:
    if admin.event is not None:
        return f"; the client reports: {admin.event.str()}. If this continues, check kafka.bootstrap_servers"
    # A listener with TLS or SASL closes the connection of a client without it, without a reason.
    return (
        f"; no broker answers at {admin.bootstrap_servers}: if this continues, check kafka.bootstrap_servers, and "
        f"whether that address is a listener for kafka.security.protocol={admin.protocol}"
    )
