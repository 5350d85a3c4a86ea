"""The Kafka cluster: one address and one security model for librdkafka, Spark's Java client and Kafka Connect."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from pydantic import Field, SecretStr

from wait_registry.diagnosis import Diagnosis, error
from wait_registry.settings import Section
from wait_registry.settings.contradictions import tls_problems


class SecurityProtocol(StrEnum):
    """How the connection is protected and who authenticates (Kafka's own four names)."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class SaslMechanism(StrEnum):
    """The SASL mechanisms that both client families speak."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class SecuritySettings(Section):
    """Our credentials for the broker, and the certificates that we trust."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    """security.protocol of every client"""
    mechanism: SaslMechanism | None = None
    """SASL mechanism; needed with a SASL_* protocol"""
    username: str | None = None
    """SASL user"""
    password: SecretStr | None = None
    """SASL password"""
    ca: str | None = Field(None, repr=False)
    """trusted certificates, PEM text; by default the system's store"""
    certificate: str | None = Field(None, repr=False)
    """client certificate chain, PEM text, for mutual TLS"""
    key: SecretStr | None = None
    """client key, PEM text (PKCS#8, unencrypted), for mutual TLS"""


class KafkaSettings(Section):
    """How to reach the one Kafka cluster that holds input, wait and dead letter topics."""

    bootstrap_servers: str = Field("localhost:9092", min_length=1)
    """host:port list of brokers to start with"""
    security: SecuritySettings = SecuritySettings()
    """how the connection is protected"""
    librdkafka: dict[str, str | int | float | bool] = Field({}, repr=False)
    """any further librdkafka client properties"""
    java: dict[str, str | int | float | bool] = Field({}, repr=False)
    """any further Java client properties (Spark)"""
    request_timeout_s: float = Field(15.0, gt=0, le=300)
    """limit of one administrative request"""

    @property
    def producer_queue_bytes(self) -> int | None:
        """Size of a producer's queue, keys and values, bytes; None for librdkafka's default of 1 GiB."""
        kilobytes = str(self.librdkafka.get("queue.buffering.max.kbytes", ""))
        return 1024 * int(kilobytes) if kilobytes.isdecimal() else None


# Properties that another setting renders: a second value would silently lose or win.
_RENDERED = {
    "bootstrap.servers": "kafka.bootstrap_servers",
    "metadata.broker.list": "kafka.bootstrap_servers",
    "security.protocol": "kafka.security.protocol",
    "sasl.mechanism": "kafka.security.mechanism",
    "sasl.mechanisms": "kafka.security.mechanism",
    "sasl.username": "kafka.security.username",
    "sasl.password": "kafka.security.password",
    "sasl.jaas.config": "kafka.security.username and password",
    "ssl.ca.pem": "kafka.security.ca",
    "ssl.certificate.pem": "kafka.security.certificate",
    "ssl.key.pem": "kafka.security.key",
    "ssl.truststore.certificates": "kafka.security.ca",
    "ssl.keystore.certificate.chain": "kafka.security.certificate",
    "ssl.keystore.key": "kafka.security.key",
    "group.id": "processor.group",
    "group.protocol": "processor.group_protocol",
    "partition.assignment.strategy": "processor.assignment_strategy",
    "message.max.bytes": "wait.max_message_bytes",
    "linger.ms": "processor.linger_ms",
    "queue.buffering.max.ms": "processor.linger_ms",
    "transaction.timeout.ms": "sweeper.transaction_timeout_ms",
}
# Rendered for Java together with the PEM texts, and free if those aren't given.
_STORE_TYPES = {"ssl.truststore.type": "ca", "ssl.keystore.type": "certificate"}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_REMOVE = "remove it: the services need their own value"
# What to do instead, where the name of a property doesn't say it.
_REASONS = {
    "group.instance.id": (
        "remove it: while a static member restarts, no process handles its partitions, for up to session.timeout.ms. "
        'For a rolling restart that moves few partitions, keep processor.assignment_strategy = "cooperative-sticky" '
        "and restart one process at a time"
    ),
}
# Properties that the guarantees rest on, or that our clients set.
_OURS = _names("""
    group.instance.id acks request.required.acks enable.idempotence partitioner message.timeout.ms delivery.timeout.ms
    compression.type compression.codec batch.size allow.auto.create.topics enable.partition.eof enable.auto.commit
    auto.commit.enable enable.auto.offset.store auto.offset.reset isolation.level transactional.id
    key.deserializer value.deserializer interceptor.classes
    error_cb stats_cb throttle_cb oauth_cb on_commit on_delivery logger
""")
# Ours in one family of clients only, and free (or unknown) in the other. A producer that reports only failures
# acknowledges nothing, and one with few retries turns an outage into failures. The processor reads the statistics.
_OURS_IN_LIBRDKAFKA = _OURS | _names("""
    delivery.report.only.error dr_cb dr_msg_cb retries message.send.max.retries statistics.interval.ms
""")
_OURS_IN_JAVA = _OURS | {"fetch.max.wait.ms"}


def kafka_problems(kafka: KafkaSettings) -> list[Diagnosis]:
    """List the contradictions within the Kafka section."""
    problems = [*_security_problems(kafka.security)]
    stores = {name: text for name, text in _STORE_TYPES.items() if getattr(kafka.security, text) is not None}
    rendered_for_java = {name: f"kafka.security.{text}" for name, text in stores.items()}
    for section, properties, ours, rendered in (
        ("librdkafka", kafka.librdkafka, _OURS_IN_LIBRDKAFKA, _RENDERED),
        ("java", kafka.java, _OURS_IN_JAVA, _RENDERED | rendered_for_java),
    ):
        for name in sorted(set(properties) & (ours | rendered.keys())):
            fix = f"set {rendered[name]} instead" if name in rendered else _REASONS.get(name, _REMOVE)
            problems.append(error(f"kafka.{section} sets {name}, which isn't free: {fix}"))
    return problems


def _security_problems(security: SecuritySettings) -> Iterator[Diagnosis]:
    protocol = security.protocol.value
    sasl = {"mechanism": security.mechanism, "username": security.username, "password": security.password}
    for name in (name for name, value in sasl.items() if protocol.startswith("SASL_") and not value):
        yield error(f"kafka.security.protocol is {protocol}, which needs kafka.security.{name}: set it")
    unused = f"kafka.security.protocol is {protocol}, which doesn't use it: set the protocol to {{}}, or remove it"
    for name in (name for name, value in sasl.items() if value and not protocol.startswith("SASL_")):
        yield error(f"kafka.security.{name} is set, but {unused.format('SASL_SSL or SASL_PLAINTEXT')}")
    without_tls = "" if protocol.endswith("SSL") else unused.format("SSL or SASL_SSL")
    yield from tls_problems("kafka.security", without_tls, security.ca, security.certificate, security.key)
