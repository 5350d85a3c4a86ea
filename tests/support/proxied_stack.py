"""An embedded stack with a breakable link of its own for each of its users."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from tests.support.network import Link
from wait_registry.local.ports import LOOPBACK, free_ports
from wait_registry.local.stack import EmbeddedStack
from wait_registry.settings.kafka import SaslMechanism, SecurityProtocol, SecuritySettings

USER = "behind-a-link"
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class ProxiedStack:
    """A broker and a Postgres that each route reaches through links that can be cut, stalled, half-opened and slowed.

    The broker has one more listener a route, which it advertises at that route's link: a client that begins there stays
    behind it, whatever the broker says of itself. `stack` has the addresses without any link.
    """

    def __init__(self, routes: Sequence[str], sasl: Collection[str] = (), **stack: Any) -> None:
        """Describe a stack that isn't started yet.

        Args:
            routes: names, for example ``"processor-1"`` and ``"sink"``.
            sasl: those of them on which the broker asks who one is: see `security_of`.
            stack: the arguments of `EmbeddedStack`; listeners among the broker properties are replaced.
        """
        self._password = secrets.token_hex(8)
        self._sasl = frozenset(sasl)
        self._stack = _RoutedStack(routes, dict.fromkeys(self._sasl, self._password), **stack)
        self._postgres_links: dict[str, Link] = {}

    @property
    def stack(self) -> EmbeddedStack:
        """The stack itself: its servers to break, its addresses to look from."""
        return self._stack

    def __enter__(self) -> Self:
        self._stack.start()
        try:
            for route in self._stack.links:
                link = Link((LOOPBACK, self._stack.postgres.port))
                self._postgres_links[route] = link.__enter__()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything. May be called again."""
        for link in self._postgres_links.values():
            link.close()
        self._stack.close()

    def bootstrap_of(self, route: str) -> str:
        return self.link(route).address

    def security_of(self, route: str) -> SecuritySettings:
        """Return how to come to the broker behind a route's link."""
        if route not in self._sasl:
            return SecuritySettings()
        return SecuritySettings(
            protocol=SecurityProtocol.SASL_PLAINTEXT,
            mechanism=SaslMechanism.PLAIN,
            username=USER,
            password=SecretStr(self._password),
        )

    def link(self, route: str) -> Link:
        return self._stack.links[route]

    def postgres_url_of(self, route: str) -> str:
        parts = urlsplit(self._stack.postgres_url)
        return urlunsplit(parts._replace(netloc=f"{parts.username}@{self.postgres_link(route).address}"))

    def postgres_link(self, route: str) -> Link:
        return self._postgres_links[route]


class _RoutedStack(EmbeddedStack):
    """The stack whose broker has the listeners; ports are known when the stack starts."""

    def __init__(self, routes: Sequence[str], passwords: Mapping[str, str], **stack: Any) -> None:
        super().__init__(**stack)
        self._routes = tuple(routes)
        self._passwords = passwords
        self._given_properties: Mapping[str, str] = self._broker_properties or {}
        self.links: dict[str, Link] = {}

    def close(self) -> None:
        super().close()
        for link in self.links.values():
            link.close()

    def _ports(self) -> tuple[int, ...]:
        ports = super()._ports()
        behind = dict(zip(self._routes, free_ports(len(self._routes)), strict=True))
        self.links = {route: Link((LOOPBACK, port)).__enter__() for route, port in behind.items()}
        self._broker_properties = {**self._given_properties, **self._listeners(ports, behind)}
        return ports

    def _listeners(self, ports: tuple[int, ...], behind: Mapping[str, int]) -> dict[str, str]:
        client, controller, *_ = ports
        # Names of listeners have neither dashes nor small letters.
        names = {route: f"ROUTE{number}" for number, route in enumerate(self._routes)}
        own = [f"PLAINTEXT://{LOOPBACK}:{client}"]
        listening = [f"{names[route]}://{LOOPBACK}:{port}" for route, port in behind.items()]
        advertised = [f"{names[route]}://{link.address}" for route, link in self.links.items()]
        protocols = [f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "CONTROLLER")]
        protocols += [
            f"{name}:{'SASL_PLAINTEXT' if route in self._passwords else 'PLAINTEXT'}" for route, name in names.items()
        ]
        logins = {
            f"listener.name.{names[route].lower()}.plain.sasl.jaas.config": (
                f'{PLAIN_LOGIN} required user_{USER}="{password}";'
            )
            for route, password in self._passwords.items()
        }
        return {
            "sasl.enabled.mechanisms": "PLAIN",
            **logins,
            "listeners": ",".join([*own, *listening, f"CONTROLLER://{LOOPBACK}:{controller}"]),
            "advertised.listeners": ",".join([*own, *advertised]),
            "listener.security.protocol.map": ",".join(protocols),
        }
