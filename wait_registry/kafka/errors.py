"""Translates errors of the Kafka clients into the project's error tree."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError, KafkaException

from wait_registry.errors import ConfigurationError, FencedError, PermanentError, TransientError, WaitRegistryError

_AUTHENTICATION = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
    }
)
# With TLS 1.3 the broker refuses a client's certificate after the handshake, which comes as a broken connection.
# Alerts about the broker's own trouble or its shutdown are not refusals.
_CERTIFICATE_ALERT = re.compile(
    r"alert (bad certificate|unsupported certificate|certificate (revoked|expired|unknown|required)|unknown ca"
    r"|access denied|handshake failure)|peer did not return a certificate",
    re.IGNORECASE,
)
# The same codes while a connection is set up, without a refusal: the connection broke, or timed out, or another address
# of the broker was tried ("Local:" is librdkafka's own error, a broker's refusal reads "Broker:"); the same within TLS.
_BROKEN_HANDSHAKE = re.compile(
    r"mechanism handshake failed: Local:|SSL transport error|alert (internal error|user cancell?ed)", re.IGNORECASE
)
# The missing permission on a topic, by the first words of the operation.
_TOPIC_PERMISSIONS = {
    "describing": "DESCRIBE (it comes with READ and with WRITE)",
    "listing": "DESCRIBE (it comes with READ and with WRITE)",
    "reading the configuration": "DESCRIBE_CONFIGS",
    "consuming": "READ",
    "reading": "READ",
    "writing": "WRITE",
    "exporting": "WRITE",
    # For the topic of the tombstones, the transaction fails at its end.
    "committing after exporting": "WRITE",
    "creating": "CREATE",
}
_AUTHORIZATION = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SECURITY_DISABLED,
    }
)
_UNKNOWN_TOPIC = frozenset({KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART})
_FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})
_TRANSIENT = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError._RETRY,
        # The broker knows of no live broker.
        KafkaError._PARTIAL,
        KafkaError._QUEUE_FULL,
        KafkaError._DESTROY,
        KafkaError._DESTROY_BROKER,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        # The client or the broker doesn't know the new leader yet, after a broker's restart.
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.NOT_CONTROLLER,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
    }
)


def is_transient(error: KafkaError) -> bool:
    """Return whether the same request may succeed later without a fix."""
    return error.code() in _TRANSIENT or _is_broken_handshake(error) or (bool(error.retriable()) and not error.fatal())


def is_access_problem(error: KafkaError) -> bool:
    """Return whether the broker refused our credentials, certificate or permissions."""
    if _is_broken_handshake(error):
        return False
    return error.code() in _AUTHENTICATION or error.code() in _AUTHORIZATION or _is_certificate_refused(error)


def _is_broken_handshake(error: KafkaError) -> bool:
    set_up = error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)
    return set_up and _BROKEN_HANDSHAKE.search(error.str() or "") is not None


def _missing_permission(error: KafkaError, doing: str) -> str:
    """Name the missing permission by the operation; the broker doesn't name it."""
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        # A client that reads from its own offsets only looks up the coordinator of its group.
        return f"{'DESCRIBE' if doing.startswith('reading ') else 'READ'} on the consumer group"
    if error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return "WRITE on transactional IDs that begin with waitreg.sweep.<wait topic>. (pattern type prefixed)"
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return next(
            (f"{name} on it" for word, name in _TOPIC_PERMISSIONS.items() if doing.startswith(word)), "this permission"
        )
    return "this permission on the cluster"


def _is_certificate_refused(error: KafkaError) -> bool:
    return _CERTIFICATE_ALERT.search(error.str() or "") is not None


def cause_of(error: WaitRegistryError) -> KafkaError | None:
    """Return the client's error that caused one of ours, or None."""
    behind = error.__cause__.args[0] if isinstance(error.__cause__, KafkaException) else None
    return behind if isinstance(behind, KafkaError) else None


def is_unknown_topic(error: WaitRegistryError) -> bool:
    """Return whether one of our errors means that a topic doesn't exist."""
    cause = cause_of(error)
    return cause is not None and cause.code() in _UNKNOWN_TOPIC


def kafka_failure(error: KafkaError | KafkaException, doing: str) -> WaitRegistryError:
    """Translate a client's error into the one to raise.

    Args:
        error: what the client reported.
        doing: the operation, as it reads in "... failed", for example ``"describing topic orders"``.

    Returns:
        ConfigurationError for credentials, certificates, permissions and missing topics; FencedError if another
        owner took over; TransientError for a failure that may pass; else PermanentError.
    """
    cause = error.args[0] if isinstance(error, KafkaException) else error
    if not isinstance(cause, KafkaError):
        return PermanentError(f"{doing} failed: {cause}")
    seen = f"{doing} failed: {cause.str()} ({cause.name()})"
    if _is_broken_handshake(cause):
        return TransientError(seen)
    if _is_certificate_refused(cause):
        return ConfigurationError(
            f"{seen}. The broker refuses our certificate: kafka.security.certificate and key must be set, be valid now "
            "and be signed by an authority that the broker trusts."
        )
    if cause.code() == KafkaError._SSL:
        return ConfigurationError(
            f"{seen}. The broker's certificate must be valid now, be signed by kafka.security.ca and be issued for "
            "the host name in kafka.bootstrap_servers; and the listener must use TLS."
        )
    if cause.code() in _AUTHENTICATION:
        return ConfigurationError(
            f"{seen}. Check kafka.security: protocol, mechanism, username, password and certificates must match "
            "the broker's listener."
        )
    if cause.code() in _AUTHORIZATION:
        permission = _missing_permission(cause, doing)
        return ConfigurationError(f"{seen}. Grant the user of kafka.security {permission} (kafka-acls --add).")
    if cause.code() in _UNKNOWN_TOPIC:
        return ConfigurationError(f"{seen}. Create the topic, or correct its name in the settings.")
    if cause.code() in _FENCED:
        return FencedError(f"{seen}. Another instance has taken over.")
    if cause.code() == KafkaError._UNKNOWN_PARTITION:
        # The topic was deleted after the client had used it, or the partition never existed.
        return PermanentError(f"{seen}. The topic, or this partition of it, doesn't exist (any more).")
    return TransientError(seen) if is_transient(cause) else PermanentError(seen)
