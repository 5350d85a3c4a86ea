"""Relations within the Kafka section: consistent security, and client properties that users must not set."""

from __future__ import annotations

from collections.abc import Iterator

from wait_registry.diagnosis import Diagnosis, error
from wait_registry.settings.kafka import KafkaSettings, SecuritySettings

# Properties that the guarantees rest on, that another setting renders, or that our clients set: a second value would
# silently lose or win.
_OURS = {
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
    "group.instance.id": "",
    "group.protocol": "processor.group_protocol",
    "partition.assignment.strategy": "processor.assignment_strategy",
    "acks": "",
    "request.required.acks": "",
    "enable.idempotence": "",
    "partitioner": "",
    "message.timeout.ms": "",
    "delivery.timeout.ms": "",
    "message.max.bytes": "wait.max_message_bytes",
    "compression.type": "",
    "compression.codec": "",
    "linger.ms": "processor.linger_ms",
    "queue.buffering.max.ms": "processor.linger_ms",
    "batch.size": "",
    "allow.auto.create.topics": "",
    "enable.partition.eof": "",
    "enable.auto.commit": "",
    "auto.commit.enable": "",
    "enable.auto.offset.store": "",
    "auto.offset.reset": "",
    "isolation.level": "",
    "transactional.id": "",
    "transaction.timeout.ms": "sweeper.transaction_timeout_ms",
    "key.deserializer": "",
    "value.deserializer": "",
    "interceptor.classes": "",
    **dict.fromkeys(("error_cb", "stats_cb", "throttle_cb", "oauth_cb", "on_commit", "on_delivery", "logger"), ""),
}
# Set by us in one family of clients only, and free (or unknown) in the other. A producer that reports only failures
# acknowledges nothing, and one with few retries turns an outage into failures.
_OURS_IN_LIBRDKAFKA = {
    **_OURS,
    **dict.fromkeys(("delivery.report.only.error", "dr_cb", "dr_msg_cb", "retries", "message.send.max.retries"), ""),
    # The processor reads the statistics itself.
    "statistics.interval.ms": "",
}
_OURS_IN_JAVA = {**_OURS, "fetch.max.wait.ms": ""}
# Rendered for Java together with the PEM texts, and free if those aren't given.
_STORE_TYPES = {"ssl.truststore.type": "ca", "ssl.keystore.type": "certificate"}


def kafka_problems(kafka: KafkaSettings) -> list[Diagnosis]:
    """List the contradictions within the Kafka section."""
    security = kafka.security
    problems = [*_sasl_problems(security), *_tls_problems(security)]
    java = _OURS_IN_JAVA | {
        name: f"kafka.security.{text}" for name, text in _STORE_TYPES.items() if getattr(security, text) is not None
    }
    for section, properties, ours in (
        ("librdkafka", kafka.librdkafka, _OURS_IN_LIBRDKAFKA),
        ("java", kafka.java, java),
    ):
        for name in sorted(set(properties) & set(ours)):
            fix = f"set {ours[name]} instead" if ours[name] else "remove it: the services need their own value"
            problems.append(error(f"kafka.{section} sets {name}, which isn't free: {fix}"))
    return problems


def _sasl_problems(security: SecuritySettings) -> Iterator[Diagnosis]:
    protocol = security.protocol.value
    given = {
        "mechanism": security.mechanism is not None,
        "username": bool(security.username),
        "password": security.password is not None,
    }
    if protocol.startswith("SASL_"):
        for name in (name for name, there in given.items() if not there):
            yield error(f"kafka.security.protocol is {protocol}, which needs kafka.security.{name}: set it")
    else:
        for name in (name for name, there in given.items() if there):
            yield error(
                f"kafka.security.{name} is set, but kafka.security.protocol is {protocol}, which doesn't use it: "
                "set the protocol to SASL_SSL (or SASL_PLAINTEXT), or remove it"
            )


def _tls_problems(security: SecuritySettings) -> Iterator[Diagnosis]:
    key = security.key.get_secret_value() if security.key else None
    given = {"ca": security.ca, "certificate": security.certificate, "key": key}
    for name, text in given.items():
        if text is None:
            continue
        if not security.protocol.value.endswith("SSL"):
            yield error(
                f"kafka.security.{name} is set, but kafka.security.protocol is {security.protocol.value}, which "
                "doesn't use it: set the protocol to SSL or SASL_SSL, or remove it"
            )
        if "-----BEGIN" not in text:
            yield error(
                f"kafka.security.{name} isn't PEM text (it has no '-----BEGIN' line): give the text, or the "
                f"path of its file as kafka.security.{name}_file"
            )
    if (security.certificate is None) != (security.key is None):
        there, absent = ("key", "certificate") if security.certificate is None else ("certificate", "key")
        yield error(f"kafka.security.{there} is set without kafka.security.{absent}: mutual TLS needs both")
