"""The Kafka cluster: one address and one security model for librdkafka, Spark's Java client and Kafka Connect."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, SecretStr

from wait_registry.settings import Section


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

    protocol: SecurityProtocol = Field(SecurityProtocol.PLAINTEXT, description="security.protocol of every client")
    mechanism: SaslMechanism | None = Field(None, description="SASL mechanism; needed with a SASL_* protocol")
    username: str | None = Field(None, description="SASL user")
    password: SecretStr | None = Field(None, description="SASL password")
    ca: str | None = Field(
        None, repr=False, description="trusted certificates, PEM text; by default the system's store"
    )
    certificate: str | None = Field(None, repr=False, description="client certificate chain, PEM text, for mutual TLS")
    key: SecretStr | None = Field(None, description="client key, PEM text (PKCS#8, unencrypted), for mutual TLS")


class KafkaSettings(Section):
    """How to reach the one Kafka cluster that holds input, wait and dead letter topics."""

    bootstrap_servers: str = Field(
        "localhost:9092", min_length=1, description="host:port list of brokers to start with"
    )
    security: SecuritySettings = Field(SecuritySettings(), description="how the connection is protected")
    librdkafka: dict[str, str | int | float | bool] = Field(
        {}, repr=False, description="any further librdkafka client properties"
    )
    java: dict[str, str | int | float | bool] = Field(
        {}, repr=False, description="any further Java client properties (Spark)"
    )
    request_timeout_s: float = Field(15.0, gt=0, le=300, description="limit of one administrative request")

    @property
    def producer_queue_bytes(self) -> int | None:
        """Size of a producer's queue, keys and values, bytes; None for librdkafka's default of 1 GiB."""
        kilobytes = str(self.librdkafka.get("queue.buffering.max.kbytes", ""))
        return 1024 * int(kilobytes) if kilobytes.isdecimal() else None
