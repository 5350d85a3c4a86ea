"""The one Kafka security model, rendered for librdkafka and for Java clients (Spark, Kafka Connect)."""

from __future__ import annotations

from wait_registry.settings.kafka import KafkaSettings, SaslMechanism, SecuritySettings

_LOGIN_MODULES = {
    SaslMechanism.PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    SaslMechanism.SCRAM_SHA_256: "org.apache.kafka.common.security.scram.ScramLoginModule",
    SaslMechanism.SCRAM_SHA_512: "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def librdkafka_security(kafka: KafkaSettings) -> dict[str, str]:
    """Render the security settings as librdkafka properties; the values include secrets, so never print them."""
    security = kafka.security
    rendered = {
        "security.protocol": security.protocol.value,
        "sasl.mechanism": security.mechanism.value if security.mechanism else None,
        "sasl.username": security.username,
        "sasl.password": security.password.get_secret_value() if security.password else None,
        "ssl.ca.pem": security.ca,
        "ssl.certificate.pem": security.certificate,
        "ssl.key.pem": security.key.get_secret_value() if security.key else None,
    }
    return {name: value for name, value in rendered.items() if value is not None}


def java_security(kafka: KafkaSettings) -> dict[str, str]:
    """Render the security settings as Java client properties (KIP-651 for PEM); the values include secrets."""
    security = kafka.security
    rendered = {"security.protocol": security.protocol.value}
    if security.mechanism is not None:
        rendered["sasl.mechanism"] = security.mechanism.value
        rendered["sasl.jaas.config"] = _jaas(security, security.mechanism)
    if security.ca is not None:
        rendered |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": security.ca}
    if security.certificate is not None and security.key is not None:
        rendered |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": security.certificate,
            "ssl.keystore.key": security.key.get_secret_value(),
        }
    return rendered


def _jaas(security: SecuritySettings, mechanism: SaslMechanism) -> str:
    password = security.password.get_secret_value() if security.password else ""
    user = _jaas_quoted(security.username or "")
    return f"{_LOGIN_MODULES[mechanism]} required username={user} password={_jaas_quoted(password)};"


def _jaas_quoted(text: str) -> str:
    # Kafka's JaasConfig reads with java.io.StreamTokenizer: C-like escapes, and a raw line break ends the string.
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
