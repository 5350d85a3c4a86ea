"""Configuration of every Kafka client."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.client_log import client_logger, log_client_error
from wait_registry.kafka.errors import is_access_problem
from wait_registry.kafka.security import java_security, librdkafka_security
from wait_registry.settings.kafka import KafkaSettings

log = logging.getLogger(__name__)

# librdkafka's own limit (1 MB) would hide the topics' limits, which are created and checked.
PRODUCER_MAX_MESSAGE_BYTES = 67_108_864
# If the broker that is named as the controller dies, requests wait for it, and the client tries to connect without a
# pause, until it refreshes its metadata: every five minutes by default.
METADATA_REFRESH_MS = 2000


def producer_config(kafka: KafkaSettings, **overrides: Any) -> dict[str, Any]:
    """Return the configuration of a producer that loses and reorders nothing.

    Args:
        kafka: the cluster.
        overrides: further librdkafka properties, as ``**{"linger.ms": 1}``; they win.

    Returns:
        Properties for ``confluent_kafka.Producer``; they include secrets, so never print them. The partitioner is
        murmur2, as in Java, since every producer of the wait topic must choose the same partition for a key.
    """
    return {
        **_client_config(kafka),
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "compression.type": "lz4",
        "message.timeout.ms": 0,
        # A record that doesn't fit an empty queue is too large; waiting doesn't help.
        "message.max.bytes": min(PRODUCER_MAX_MESSAGE_BYTES, kafka.producer_queue_bytes or PRODUCER_MAX_MESSAGE_BYTES),
        **overrides,
    }


def consumer_config(kafka: KafkaSettings, **overrides: Any) -> dict[str, Any]:
    """Return the configuration of a consumer that reads only committed records and commits nothing by itself.

    Args:
        kafka: the cluster.
        overrides: further librdkafka properties, ``group.id`` among them; they win.

    Returns:
        Properties for ``confluent_kafka.Consumer``; they include secrets, so never print them.
    """
    return {
        **_client_config(kafka),
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "allow.auto.create.topics": False,
        **overrides,
    }


def share_consumer_config(kafka: KafkaSettings, **overrides: Any) -> dict[str, Any]:
    """Return the configuration of a share consumer (KIP-932) that acknowledges each record by itself.

    Isolation level and first offset are the group's own configuration, in the broker.

    Args:
        kafka: the cluster.
        overrides: further librdkafka properties, ``group.id`` among them; they win.

    Returns:
        Properties for ``confluent_kafka.ShareConsumer``; they include secrets, so never print them.
    """
    return {**_client_config(kafka), "share.acknowledgement.mode": "explicit", **overrides}


def java_client_config(kafka: KafkaSettings, **overrides: Any) -> dict[str, str]:
    """Return the connection properties of a Java client; Spark needs each name prefixed with ``kafka.``."""
    properties = {
        "bootstrap.servers": kafka.bootstrap_servers,
        **kafka.java,
        **java_security(kafka),
        **overrides,
    }
    return {name: _java_text(value) for name, value in properties.items()}


def plain_properties(kafka: KafkaSettings) -> dict[str, Any]:
    """Return connection properties that can be passed to another process; they include secrets."""
    return {
        "client.id": "waitreg",
        "statistics.interval.ms": 0,
        "log.connection.close": False,
        # After an outage, clients must not pause for ten seconds more.
        "reconnect.backoff.max.ms": 2000,
        **kafka.librdkafka,
        "bootstrap.servers": kafka.bootstrap_servers,
        **librdkafka_security(kafka),
    }


def flush(producer: Producer, timeout_s: float) -> int:
    """Wait for the delivery reports of a producer; return how many records have none after the timeout.

    Raises:
        KafkaException: the producer has a fatal error.
    """
    try:
        waiting: int = producer.flush(timeout_s)
    except SystemError as error:
        # After a fatal error, confluent-kafka still calls the delivery callbacks, with the error's exception set.
        raise error.__cause__ or error from None
    return waiting


@contextmanager
def usable_settings() -> Iterator[None]:
    """Create a client in this context; a property or certificate that librdkafka can't use is a settings error.

    Raises:
        ConfigurationError: the message quotes librdkafka's.
    """
    try:
        yield
    except KafkaException as error:
        raise ConfigurationError(
            f"no Kafka client can be created from the settings: {error.args[0].str()}. Correct kafka.librdkafka or "
            "kafka.security (certificates and keys are PEM text; a key must belong to its certificate)"
        ) from error


class Admin:
    """An `AdminClient` that remembers why its requests get no answer.

    With wrong credentials, a wrong address or a bad certificate every request times out; only the error callback gets
    the reason. ``refusal`` is the last reason that a retry can't fix and that may explain the current request,
    ``event`` the longest text of any kind: librdkafka says why a connection ended, and then that it ended, or the other
    way around.

    Workaround: after a long silence it continues with a new client, since librdkafka's may have forgotten all brokers
    and never find them again (https://github.com/confluentinc/librdkafka/issues/5301, open in 2.16).
    """

    def __init__(self, kafka: KafkaSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.refusal: KafkaError | None = None
        self._answered = False
        self.event: KafkaError | None = None
        self.request_timeout_s = kafka.request_timeout_s
        self.bootstrap_servers = kafka.bootstrap_servers
        self.protocol = kafka.security.protocol.value
        self._kafka = kafka
        self._monotonic = monotonic
        self._client = self._open()
        self._heard_s = monotonic()

    def _open(self) -> AdminClient:
        # A bound method would make a reference cycle, which the garbage collector may find in the client's own thread;
        # librdkafka aborts the process if a client is destroyed there.
        me = weakref.ref(self)
        with usable_settings():
            return AdminClient(
                {
                    "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
                    **_client_config(self._kafka),
                    "error_cb": lambda error: _notify(me(), error),
                }
            )

    def __getattr__(self, name: str) -> Any:
        # A copy starts without attributes; asking it for `_client` would recurse without end.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._client, name)

    def begin_request(self) -> None:
        """Forget earlier refusals, which could make a later outage look like a refusal.

        They count until a first request has succeeded: the client may have been refused before the request, and
        librdkafka reports the same error of a broker only every 30 s.
        """
        self._client.poll(0)  # serves the error callback
        if self._answered:
            self.refusal = None

    def end_request(self) -> None:
        """Record the first successful response: the broker accepts this client."""
        self._answered = True
        self.event = None
        self._heard_s = self._monotonic()

    def request_unanswered(self) -> None:
        """Continue with a new client if nothing was received for half of a request's limit.

        Requests of other threads to the old client fail with ``_DESTROY``, which is transient.
        """
        now_s = self._monotonic()
        if now_s - self._heard_s < self.request_timeout_s / 2:
            return
        try:
            self._client = self._open()
        except ConfigurationError as error:  # for instance, no thread is left
            log.warning("can't create a new Kafka client, keeping the one without answers: %s", error)
            return
        self._answered = False
        self.refusal = self.event = None
        self._heard_s = now_s

    def on_error(self, error: KafkaError) -> None:
        """Note an event of the client's error callback."""
        said = "" if self.event is None else self.event.str()
        if error.code() != KafkaError._ALL_BROKERS_DOWN and len(error.str()) >= len(said):
            self.event = error
        if is_access_problem(error):
            self.refusal = error
        log_client_error(error)


def _notify(admin: Admin | None, error: KafkaError) -> None:
    if admin is not None:
        admin.on_error(error)


def admin(kafka: KafkaSettings) -> Admin:
    """Open an administrative client, whose requests are limited by ``kafka.request_timeout_s``.

    Raises:
        ConfigurationError: as `usable_settings`.
    """
    return Admin(kafka)


def _client_config(kafka: KafkaSettings) -> dict[str, Any]:
    return {"error_cb": log_client_error, "logger": client_logger(), **plain_properties(kafka)}


def _java_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
