"""Configuration of every Kafka client, so that all speak to the cluster alike."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.client_log import client_logger, log_client_error
from wait_registry.kafka.errors import is_access_problem
from wait_registry.kafka.security import java_security, librdkafka_security
from wait_registry.settings.kafka import KafkaSettings

__all__ = [
    "Admin",
    "admin",
    "consumer_config",
    "java_client_config",
    "log_client_error",
    "plain_properties",
    "producer_config",
    "usable_settings",
]

log = logging.getLogger(__name__)

# librdkafka's own limit (1 MB) would hide the topics' limits, which are what is created and checked.
PRODUCER_MAX_MESSAGE_BYTES = 67_108_864
# Brokers name any of them that lives as the controller. When that one dies, requests wait for it, and the client tries
# to connect without a pause, until it asks anew who it is: every five minutes by default.
CONTROLLER_ASKED_FOR_EVERY_MS = 2000


def producer_config(kafka: KafkaSettings, **overrides: Any) -> dict[str, Any]:
    """Make the configuration of a producer that loses and reorders nothing.

    Args:
        kafka: the cluster.
        overrides: further librdkafka properties, as ``**{"linger.ms": 1}``; they win.

    Returns:
        Properties for ``confluent_kafka.Producer``; they include secrets, so never print them. The partitioner is
        murmur2, as Java's: every producer of the wait topic must agree on a key's partition.
    """
    return {
        **_client_config(kafka),
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "compression.type": "lz4",
        "message.timeout.ms": 0,
        # A record that the queue has no room for when it is empty is too large, not early.
        "message.max.bytes": min(PRODUCER_MAX_MESSAGE_BYTES, kafka.producer_queue_bytes or PRODUCER_MAX_MESSAGE_BYTES),
        **overrides,
    }


def consumer_config(kafka: KafkaSettings, **overrides: Any) -> dict[str, Any]:
    """Make the configuration of a consumer that sees committed records only and commits nothing by itself.

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


def java_client_config(kafka: KafkaSettings, **overrides: Any) -> dict[str, str]:
    """Make the connection properties of a Java client; Spark wants each name prefixed with ``kafka.``."""
    properties = {
        "bootstrap.servers": kafka.bootstrap_servers,
        **kafka.java,
        **java_security(kafka),
        **overrides,
    }
    return {name: _java_text(value) for name, value in properties.items()}


def plain_properties(kafka: KafkaSettings) -> dict[str, Any]:
    """Return what a client needs to connect, as values that can be handed to another process; secrets among them."""
    return {
        "client.id": "waitreg",
        "statistics.interval.ms": 0,
        "log.connection.close": False,
        # An outage shouldn't end with clients that still pause for ten seconds.
        "reconnect.backoff.max.ms": 2000,
        **kafka.librdkafka,
        "bootstrap.servers": kafka.bootstrap_servers,
        **librdkafka_security(kafka),
    }


@contextmanager
def usable_settings() -> Iterator[None]:
    """Make a client within this: a property or certificate that librdkafka can't use is the settings' fault.

    Raises:
        ConfigurationError: the message has what librdkafka said of it.
    """
    try:
        yield
    except KafkaException as error:
        raise ConfigurationError(
            f"no Kafka client can be made of the settings: {error.args[0].str()}. Correct kafka.librdkafka or "
            "kafka.security (certificates and keys are PEM text; a key must be that of its certificate)"
        ) from error


class Admin:
    """An administrative client that remembers why its requests get no answer; all else is as `AdminClient` has it.

    With wrong credentials, a wrong address or a broken certificate every request merely times out; the reason comes to
    the error callback alone. ``refusal`` is the last one that retrying can't mend and that may explain the request that
    is waited for, ``last_event`` the last of any kind.

    When it has been silent for too long it begins anew with another client: librdkafka's may have forgotten all brokers
    and never find them again (https://github.com/confluentinc/librdkafka/issues/5301).
    """

    def __init__(self, kafka: KafkaSettings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.refusal: KafkaError | None = None
        self._answered = False
        self.last_event: KafkaError | None = None
        self.request_timeout_s = kafka.request_timeout_s
        self.bootstrap_servers = kafka.bootstrap_servers
        self.protocol = kafka.security.protocol.value
        self._kafka = kafka
        self._monotonic = monotonic
        self._client = self._open()
        self._heard_s = monotonic()

    def _open(self) -> AdminClient:
        # A bound method here would make a reference cycle, which the garbage collector may find in the client's own
        # thread; librdkafka aborts the process when a client is destroyed there.
        me = weakref.ref(self)
        with usable_settings():
            return AdminClient(
                {
                    "topic.metadata.refresh.interval.ms": CONTROLLER_ASKED_FOR_EVERY_MS,
                    **_client_config(self._kafka),
                    "error_cb": lambda error: _tell(me(), error),
                }
            )

    def __getattr__(self, name: str) -> Any:
        # Without its own attributes (a copy begins so) the line below would ask itself for `_client`, without end.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._client, name)

    def begin_request(self) -> None:
        """Forget refusals from before this request: days later they would make a plain outage look like one.

        Until a first request has succeeded they count on: the client may have been refused before it was asked, and
        librdkafka reports the same error of a broker only every 30 s.
        """
        self._client.poll(0)  # serves the error callback
        if self._answered:
            self.refusal = None

    def end_request(self) -> None:
        """Take down that the broker has answered, so that it accepts this client."""
        self._answered = True
        self._heard_s = self._monotonic()

    def request_unanswered(self) -> None:
        """Begin anew if nothing has been heard for half a request's limit, be it since this client was made.

        What other threads still ask the former one fails with ``_DESTROY``, which is transient.
        """
        now_s = self._monotonic()
        if now_s - self._heard_s < self.request_timeout_s / 2:
            return
        try:
            self._client = self._open()
        except ConfigurationError as error:  # what could be used at the start may be used again: no thread left, say
            log.warning("no other Kafka client can be made, the one that isn't answered is kept: %s", error)
            return
        self._answered = False
        self.refusal = self.last_event = None
        self._heard_s = now_s

    def on_error(self, error: KafkaError) -> None:
        """Note an event of the client's error callback."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last_event = error
        if is_access_problem(error):
            self.refusal = error
        log_client_error(error)


def _tell(admin: Admin | None, error: KafkaError) -> None:
    if admin is not None:
        admin.on_error(error)


def admin(kafka: KafkaSettings) -> Admin:
    """Open an administrative client; its requests are limited by ``kafka.request_timeout_s``.

    Raises:
        ConfigurationError: as `usable_settings`.
    """
    return Admin(kafka)


def _client_config(kafka: KafkaSettings) -> dict[str, Any]:
    return {"error_cb": log_client_error, "logger": client_logger(), **plain_properties(kafka)}


def _java_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
