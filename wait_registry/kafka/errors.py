"""Translates errors of the Kafka clients into the project's error tree."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError, KafkaException

from wait_registry.errors import ConfigurationError, FencedError, PermanentError, TransientError, WaitRegistryError


def _codes(names: str) -> frozenset[int]:
    return frozenset(getattr(KafkaError, name) for name in names.split())


_AUTHENTICATION = _codes(
    "_AUTHENTICATION _SSL SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE"
)
_AUTHORIZATION = _codes(
    "TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED "
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED SECURITY_DISABLED"
)
_UNKNOWN_TOPIC = _codes("_UNKNOWN_TOPIC UNKNOWN_TOPIC_OR_PART")
# Of a consumed topic: it was deleted.
TOPIC_GONE = _UNKNOWN_TOPIC | _codes("_UNKNOWN_PARTITION")
_FENCED = _codes("_FENCED PRODUCER_FENCED INVALID_PRODUCER_EPOCH")
# _PARTIAL: the broker knows of no live broker. ..._LEADER_EPOCH: after a broker's restart the client or the broker
# doesn't know the new leader yet.
_TRANSIENT = _codes("""
    _TRANSPORT _ALL_BROKERS_DOWN _TIMED_OUT _TIMED_OUT_QUEUE _MSG_TIMED_OUT _RESOLVE _WAIT_COORD _RETRY _PARTIAL
    _QUEUE_FULL _DESTROY _DESTROY_BROKER
    COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR NOT_ENOUGH_REPLICAS
    NOT_ENOUGH_REPLICAS_AFTER_APPEND LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION FENCED_LEADER_EPOCH
    UNKNOWN_LEADER_EPOCH REQUEST_TIMED_OUT NETWORK_EXCEPTION BROKER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE NOT_CONTROLLER
    KAFKA_STORAGE_ERROR REBALANCE_IN_PROGRESS CONCURRENT_TRANSACTIONS OFFSET_NOT_AVAILABLE UNSTABLE_OFFSET_COMMIT
    THROTTLING_QUOTA_EXCEEDED
""")
# The client dropped a record because of an earlier error.
DROPPED = _codes("_PURGE_QUEUE _PURGE_INFLIGHT")
# A producer or its transaction is at an end, whatever it was sending; a new producer may succeed. The broker forgets a
# transactional ID that was idle for transactional.id.expiration.ms (INVALID_PRODUCER_ID_MAPPING).
_PRODUCER_ENDED = DROPPED | _codes("""
    INVALID_PRODUCER_ID_MAPPING UNKNOWN_PRODUCER_ID INVALID_TXN_STATE OUT_OF_ORDER_SEQUENCE_NUMBER
    DUPLICATE_SEQUENCE_NUMBER TRANSACTION_ABORTABLE TRANSACTION_COORDINATOR_FENCED
""")
_TOO_LARGE = _codes("MSG_SIZE_TOO_LARGE RECORD_LIST_TOO_LARGE")
# All that is ever said of a record itself, or of the batch that it was in.
_RECORD_REFUSED = _TOO_LARGE | _codes("INVALID_RECORD INVALID_TIMESTAMP")
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
    "committing offsets": "READ",
    # For the topic of the tombstones, the transaction fails at its end.
    "committing after exporting": "WRITE",
    "creating": "CREATE",
    "deleting": "DELETE",
}


class RecordRefused(PermanentError):
    """A record, or the batch that it was in, is too large or invalid for its topic: sent again, it is refused again."""


def is_transient(error: KafkaError) -> bool:
    """Return whether the same request may succeed later without a fix."""
    return error.code() in _TRANSIENT or _is_broken_handshake(error) or (bool(error.retriable()) and not error.fatal())


def is_access_problem(error: KafkaError) -> bool:
    """Return whether the broker refused our credentials, certificate or permissions."""
    if _is_broken_handshake(error):
        return False
    return error.code() in _AUTHENTICATION or error.code() in _AUTHORIZATION or _refuses_certificate(error)


def _is_broken_handshake(error: KafkaError) -> bool:
    set_up = error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)
    return set_up and _BROKEN_HANDSHAKE.search(error.str() or "") is not None


def _refuses_certificate(error: KafkaError) -> bool:
    return _CERTIFICATE_ALERT.search(error.str() or "") is not None


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


def cause_of(error: WaitRegistryError) -> KafkaError | None:
    """Return the client's error that caused one of ours, or None."""
    behind = error.__cause__.args[0] if isinstance(error.__cause__, KafkaException) else None
    return behind if isinstance(behind, KafkaError) else None


def code_of(error: WaitRegistryError) -> int | None:
    """Return the code of the client's error that caused one of ours, or None."""
    cause = cause_of(error)
    return None if cause is None else cause.code()


def is_unknown_topic(error: WaitRegistryError) -> bool:
    """Return whether one of our errors means that a topic doesn't exist."""
    return code_of(error) in _UNKNOWN_TOPIC


def is_refused_topic(error: WaitRegistryError) -> bool:
    """Return whether one of our errors means that this user has no permission on a topic."""
    return bool(code_of(error) == KafkaError.TOPIC_AUTHORIZATION_FAILED)


def kafka_failure(error: KafkaError | KafkaException, doing: str) -> WaitRegistryError:
    """Translate a client's error into the one to raise.

    Args:
        error: what the client reported.
        doing: the operation, as it reads in "... failed", for example ``"describing topic orders"``.

    Returns:
        ConfigurationError for credentials, certificates, permissions, missing topics and assignment strategies;
        FencedError if another owner took over; TransientError for a failure that may pass, or that a new producer may
        not have; `RecordRefused` for what is said of a record; else PermanentError.
    """
    cause = error.args[0] if isinstance(error, KafkaException) else error
    if not isinstance(cause, KafkaError):
        return PermanentError(f"{doing} failed: {cause}")
    seen = f"{doing} failed: {cause.str()} ({cause.name()})"
    if _is_broken_handshake(cause):
        return TransientError(seen)
    if cause.code() in _FENCED:
        return FencedError(f"{seen}. Another instance has taken over.")
    if (fix := _fix_of_settings(cause, doing)) is not None:
        return ConfigurationError(f"{seen}. {fix}")
    if cause.code() == KafkaError._UNKNOWN_PARTITION:
        # The topic was deleted after the client had used it, or the partition never existed.
        return PermanentError(
            f"{seen}. The topic, or this partition of it, doesn't exist (any more). Create the topic (`waitreg topics "
            "create`), or correct its name in the settings."
        )
    if is_transient(cause) or cause.code() in _PRODUCER_ENDED:
        return TransientError(seen)
    if cause.code() in _TOO_LARGE:
        return RecordRefused(f"{seen}. Raise max.message.bytes of the topic as `waitreg topics check` says.")
    return RecordRefused(seen) if cause.code() in _RECORD_REFUSED else PermanentError(seen)


def write_failure(error: KafkaError | KafkaException, doing: str) -> WaitRegistryError:
    """Translate an error of a transaction, which is a verdict on a record only if it is `RecordRefused`.

    Arguments as `kafka_failure`; TransientError in place of any other PermanentError: start again with a new producer.
    """
    failure = kafka_failure(error, doing)
    unknown = isinstance(failure, PermanentError) and not isinstance(failure, RecordRefused)
    return TransientError(str(failure)) if unknown else failure


def _fix_of_settings(cause: KafkaError, doing: str) -> str | None:
    if _refuses_certificate(cause):
        return (
            "The broker refuses our certificate: kafka.security.certificate and key must be set, be valid now and be "
            "signed by an authority that the broker trusts."
        )
    if cause.code() == KafkaError._SSL:
        return (
            "The broker's certificate must be valid now, be signed by kafka.security.ca and be issued for the host "
            "name in kafka.bootstrap_servers; and the listener must use TLS."
        )
    if cause.code() in _AUTHENTICATION:
        return (
            "Check kafka.security: protocol, mechanism, username, password and certificates must match the broker's "
            "listener."
        )
    if cause.code() in _AUTHORIZATION:
        return f"Grant the user of kafka.security {_missing_permission(cause, doing)} (kafka-acls --add)."
    if cause.code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
        return (
            "Another member of this group uses another assignment strategy, or is no consumer. Stop it, or set "
            "processor.assignment_strategy to the strategy that it uses."
        )
    if cause.code() == KafkaError.GROUP_ID_NOT_FOUND or "group id does not exist" in cause.str():
        return (
            "Where the group exists, it is one of another type (consumer, classic or share): choose another "
            "processor.group, or end its members and delete it (kafka-groups.sh shows the type)."
        )
    return "Create the topic, or correct its name in the settings." if cause.code() in _UNKNOWN_TOPIC else None
