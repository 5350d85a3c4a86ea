"""Relations within the Kafka section: consistent security, and client properties that users must not set."""

from __future__ import annotations

from collections.abc import Iterator

from wait_registry.diagnosis import Diagnosis, error
from wait_registry.settings.kafka import KafkaSettings, SecuritySettings

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
    key = security.key.get_secret_value() if security.key else None
    pem = {"ca": security.ca, "certificate": security.certificate, "key": key}
    for name in (name for name, value in sasl.items() if protocol.startswith("SASL_") and not value):
        yield error(f"kafka.security.protocol is {protocol}, which needs kafka.security.{name}: set it")
    for values, using in ((sasl, ("SASL_SSL", "SASL_PLAINTEXT")), (pem, ("SSL", "SASL_SSL"))):
        for name in (name for name, value in values.items() if value and protocol not in using):
            yield error(
                f"kafka.security.{name} is set, but kafka.security.protocol is {protocol}, which doesn't use it: "
                f"set the protocol to {' or '.join(using)}, or remove it"
            )
    for name, text in pem.items():
        yield from pem_problems(f"kafka.security.{name}", text)
    yield from pair_problems("kafka.security", "mutual TLS", certificate=security.certificate, key=key)


def pem_problems(name: str, text: str | None) -> Iterator[Diagnosis]:
    """Refuse a text that isn't PEM."""
    if text is not None and "-----BEGIN" not in text:
        yield error(
            f"{name} isn't PEM text (it has no '-----BEGIN' line): give the text, or the path of its file as "
            f"{name}_file"
        )


def pair_problems(section: str, use: str, **values: object) -> Iterator[Diagnosis]:
    """Refuse one of two settings without the other; ``use`` is what needs both."""
    given = [name for name, value in values.items() if value is not None]
    if len(given) == 1:
        (absent,) = set(values) - set(given)
        yield error(f"{section}.{given[0]} is set without {section}.{absent}: {use} needs both")


def more_than(low: str, low_value: float, high: str, high_value: float, why: str = "", unit: str = "") -> Diagnosis:
    """Return the error of a value that is larger than the one which it must not exceed."""
    seen, limit = f"{low_value:.16g}{unit}", f"{high_value:.16g}{unit}"
    return error(f"{low} is {seen}, more than {high} = {limit}{why}: lower the first or raise the second")
