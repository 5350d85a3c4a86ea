"""Passwords that a file spells out: Kafka Connect shows a connector's configuration to everybody who may ask."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from wait_registry.cli.connect.connector_file import Connector

# Whatever a property that holds a secret is called by a connector.
_SECRET: Final = re.compile(r"(password|passphrase|secret|ssl\.keystore\.key)$", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"\$\{[^{}:]+:[^{}]+\}")
# In a JAAS line, or among a URL's parameters.
_INSIDE: Final = re.compile(r"""(password|secret)\s*=\s*["']?(?!["']|\$\{)[^\s;&]""", re.IGNORECASE)


def plain_secrets(connectors: Iterable[Connector]) -> Iterator[str]:
    """Yield a sentence for each property that spells a secret out, the secret not in it. Pure."""
    for connector in connectors:
        for name, value in connector.config.items():
            bare = _SECRET.search(name) is not None and value != "" and _REFERENCE.search(value) is None
            if bare or _INSIDE.search(value):
                yield (
                    f"{connector.name} ({connector.origin}): {name} spells a secret out, and Kafka Connect shows it to "
                    "everybody who may ask: write a reference, ${connect.secrets.postgres_password} or ${file:PATH:KEY}"
                )
