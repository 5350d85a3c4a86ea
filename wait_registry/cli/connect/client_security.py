"""The Kafka security of a connector's own clients, if it isn't the worker's: overrides that refer to secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pydantic import SecretStr

from wait_registry.cli.connect.connector_file import Connector
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.security import java_security
from wait_registry.settings.root import Settings

# A sink reads, and writes its dead letters; a source writes, and reads its offsets; both create topics.
CLIENTS: Final = ("consumer.override.", "producer.override.", "admin.override.")


def with_client_security(connector: Connector, settings: Settings) -> Connector:
    """Add `kafka.security` to a connector, if `connect.client_security` asks for it.

    The worker must allow it (connector.client.config.override.policy=All). What the file itself sets wins.

    Raises:
        ConfigurationError: a secret is needed, and connect.secrets doesn't say where the worker finds it.
    """
    if not settings.connect.client_security:
        return connector
    properties = _by_reference(settings)
    overrides = {f"{client}{name}": value for client in CLIENTS for name, value in properties.items()}
    return replace(connector, config={**overrides, **connector.config})


def _by_reference(settings: Settings) -> dict[str, str]:
    security, secrets = settings.kafka.security, settings.connect.secrets
    # A certificate is public anyway; its key and the password remain with the worker.
    instead = {
        "password": _reference("kafka_password", secrets.kafka_password) if security.password is not None else None,
        "key": _reference("kafka_key", secrets.kafka_key) if security.key is not None else None,
    }
    return java_security(settings.kafka.model_copy(update={"security": security.model_copy(update=instead)}))


def _reference(name: str, value: str) -> SecretStr:
    if not value:
        raise ConfigurationError(
            f"connect.client_security is on, and connect.secrets.{name} is empty: set it to where the worker finds "
            "the secret, such as env:NAME"
        )
    return SecretStr(f"${{{value}}}")
