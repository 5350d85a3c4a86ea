"""Fill connectors' files in from settings: their variables, and the security of their Kafka clients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from pydantic import SecretStr

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.security import java_security
from wait_registry.settings.connect import require_connect
from wait_registry.settings.kafka import SecuritySettings
from wait_registry.settings.tree import Settings
from waitreg.connect.connector_file import Connector, connector_path, read_connector
from waitreg.connect.variables import variable

# A sink reads, and writes its dead letters; a source writes, and reads its offsets; both create topics.
CLIENTS: Final = ("consumer.override.", "producer.override.", "admin.override.")


def fill_in(given: Iterable[str], settings: Settings) -> list[Connector]:
    """Read connectors, fill in their variables, and add the security of their clients.

    Args:
        given: names of this project's files, or paths.
        settings: what they are filled from.

    Raises:
        ConfigurationError: a file can't be read or filled in, or settings of Kafka Connect contradict each other.
    """
    require_connect(settings.connect)
    found = [read_connector(connector_path(name), partial(variable, settings=settings)) for name in given]
    return [with_client_security(connector, settings) for connector in found]


def with_client_security(connector: Connector, settings: Settings) -> Connector:
    """Add `kafka.security` to a connector, if `connect.client_security` asks for it.

    The worker must allow it (connector.client.config.override.policy=All). What the file itself sets wins.

    Raises:
        ConfigurationError: a secret is needed, and connect.secrets doesn't say where the worker finds it.
    """
    if not settings.connect.client_security:
        return connector
    properties = java_security(settings.kafka.model_copy(update={"security": _by_reference(settings)}))
    overrides = {f"{client}{name}": value for client in CLIENTS for name, value in properties.items()}
    return replace(connector, config={**overrides, **connector.config})


def _by_reference(settings: Settings) -> SecuritySettings:
    """Return kafka.security with references; a certificate is public anyway, its key and the password aren't."""
    security, secrets = settings.kafka.security, settings.connect.secrets
    instead: dict[str, SecretStr] = {}
    for name, reference in (("password", secrets.kafka_password), ("key", secrets.kafka_key)):
        if getattr(security, name) is None:
            continue
        if not reference:
            raise ConfigurationError(
                f"connect.client_security is on, and connect.secrets.kafka_{name} is empty: set it to where the worker "
                "finds the secret, such as env:NAME"
            )
        instead[name] = SecretStr(f"${{{reference}}}")
    return security.model_copy(update=instead)
