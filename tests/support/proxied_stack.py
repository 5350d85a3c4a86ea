"""An embedded stack with a breakable link of its own for each of its users."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self

from pydantic import SecretStr

from tests.support.network import Link
from tests.support.tcp_proxy import KafkaProxy
from wait_registry.settings.kafka import SaslMechanism, SecurityProtocol, SecuritySettings
from waitreg.local.ports import LOOPBACK, free_ports
from waitreg.local.postgres import DATABASE, USER
from waitreg.local.stack import EmbeddedStack

PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class ProxiedStack:
    """A broker and a Postgres that each route reaches through links that can be cut, stalled, half-opened and slowed.

    `stack` has the addresses without any link.
    """

    def __init__(self, routes: Sequence[str], sasl: Collection[str], **stack: Any) -> None:
        """Describe a stack that isn't started yet.

        Args:
            routes: names, for example ``"processor-1"`` and ``"sink"``.
            sasl: those of them on which the broker asks who one is: see `security_of`.
            stack: the arguments of `EmbeddedStack`; listeners among the broker properties are replaced.
        """
        self._routes, self._sasl = routes, sasl
        self.stack = _StackWithLogin(**stack)
        self._links: dict[str, tuple[KafkaProxy, Link]] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as started:
            started.enter_context(self.stack)
            for route in self._routes:
                proxy = KafkaProxy(self.stack.login_address if route in self._sasl else self.stack.bootstrap_servers)
                postgres = Link((LOOPBACK, self.stack.postgres.port))
                self._links[route] = started.enter_context(proxy), started.enter_context(postgres)
            self._open = started.pop_all()
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything. May be called again."""
        self._open.close()

    def bootstrap_of(self, route: str) -> str:
        return self.link(route).address

    def security_of(self, route: str) -> SecuritySettings:
        """Return how to come to the broker behind a route's link."""
        return self.stack.login if route in self._sasl else SecuritySettings()

    def link(self, route: str) -> KafkaProxy:
        return self._links[route][0]

    def postgres_url_of(self, route: str) -> str:
        return f"postgresql://{USER}@{self.postgres_link(route).address}/{DATABASE}"

    def postgres_link(self, route: str) -> Link:
        return self._links[route][1]


class _StackWithLogin(EmbeddedStack):
    """The stack whose broker has one more listener, which asks who one is; ports are known when the stack starts."""

    def __init__(self, **stack: Any) -> None:
        super().__init__(**stack)
        self._given_properties: Mapping[str, str] = self._broker_properties or {}
        self.login_address = ""
        self.login = SecuritySettings(
            protocol=SecurityProtocol.SASL_PLAINTEXT,
            mechanism=SaslMechanism.PLAIN,
            username="behind-a-link",
            password=SecretStr(secrets.token_hex(8)),
        )

    def _ports(self) -> tuple[int, ...]:
        client, controller, *others = super()._ports()
        self.login_address = f"{LOOPBACK}:{free_ports(1)[0]}"
        advertised = f"PLAINTEXT://{LOOPBACK}:{client},LOGIN://{self.login_address}"
        assert self.login.password is not None
        user = f'user_{self.login.username}="{self.login.password.get_secret_value()}"'
        self._broker_properties = {
            **self._given_properties,
            "listeners": f"{advertised},CONTROLLER://{LOOPBACK}:{controller}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": f"{PLAIN_LOGIN} required {user};",
        }
        return (client, controller, *others)
