"""A broker that asks who one is: SASL and TLS listeners, users, certificates and access control, all for real.

Its plain listener is the operator's: a client there may do everything. The users of the others may do nothing
but what `SecuredBroker.grant` gives them.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.certificates import Authority, Certificate
from tests.support.waiting import wait_until
from wait_registry.local.broker import EmbeddedBroker
from wait_registry.local.ports import LOOPBACK, free_ports

Protocol: TypeAlias = Literal["SASL_PLAINTEXT", "SASL_SSL", "SSL"]
Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
Resource: TypeAlias = Literal["topic", "group", "transactional_id", "cluster"]

PROTOCOLS: tuple[Protocol, ...] = ("SASL_PLAINTEXT", "SASL_SSL", "SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# A listener as SASL_SSL, whose certificate is out of date.
OUT_OF_DATE = "OUT_OF_DATE"
# PLAIN has its users in the broker's configuration, so there is this one; SCRAM users are made by `add_user`.
PLAIN_USER = "plain-user"
CLUSTER_NAME = "kafka-cluster"
LOGIN = "org.apache.kafka.common.security"
RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}


class SecuredBroker:
    """One broker with a listener for each protocol; a context manager."""

    def __init__(self, directory: Path) -> None:
        """Make the certificates and describe the broker; nothing runs yet.

        Args:
            directory: folder for certificates and data.
        """
        self.authority = Authority(directory, "test-authority")
        self.other_authority = Authority(directory, "another-authority")
        self.plain_password = secrets.token_hex(8)
        server = self.authority.issue("broker", f"IP:{LOOPBACK}")
        stale = self.authority.issue("out-of-date", f"IP:{LOOPBACK}", expired=True)
        names = (*PROTOCOLS, OUT_OF_DATE)
        operator, controller, *others = free_ports(2 + len(names))
        self._ports: dict[str, int] = dict(zip(names, others, strict=True))
        properties = {
            **self._listeners(operator, controller),
            **_tls(server, self.authority),
            **_keystore(stale, f"listener.name.{OUT_OF_DATE.lower()}."),
            **self._sasl(),
            **_ACCESS,
        }
        self.broker = EmbeddedBroker(directory / "broker", (operator, controller), properties=properties)
        self._admin: AdminClient | None = None

    def __enter__(self) -> SecuredBroker:
        self.broker.start()
        self._admin = AdminClient({"bootstrap.servers": self.operator})
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self._admin = None
        self.broker.kill()
        shutil.rmtree(self.broker.directory, ignore_errors=True)

    @property
    def operator(self) -> str:
        """The address without authentication, where everything is allowed."""
        return self.broker.bootstrap_servers

    @property
    def admin(self) -> AdminClient:
        assert self._admin is not None, "the secured broker isn't running"
        return self._admin

    def address(self, listener: str) -> str:
        """Return the address of a listener; its certificate holds for this address, and not for ``localhost``."""
        return f"{LOOPBACK}:{self._ports[listener]}"

    def add_user(self, name: str) -> str:
        """Make a SCRAM user (both mechanisms) and return its password."""
        password = secrets.token_hex(8)
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            upsertion = UserScramCredentialUpsertion(name, info, password.encode())
            self.admin.alter_user_scram_credentials([upsertion])[name].result(30)
        return password

    def grant(
        self, user: str, resource: Resource, name: str, operations: Iterable[str], *, prefixed: bool = False
    ) -> None:
        """Allow operations (``READ``, ``WRITE``, ``DESCRIBE`` ...) on a resource; returns when the broker knows."""
        bindings = [self._binding(AclBinding, user, resource, name, operation, prefixed) for operation in operations]
        for done in self.admin.create_acls(bindings).values():
            done.result(30)
        wait_until(lambda: set(bindings) <= set(self._rights(user)), what=f"the rights of {user} on {name}")

    def revoke(
        self, user: str, resource: Resource, name: str, operations: Iterable[str], *, prefixed: bool = False
    ) -> None:
        """Take rights away again; returns when the broker knows."""
        gone, bindings = (
            [self._binding(kind, user, resource, name, operation, prefixed) for operation in operations]
            for kind in (AclBindingFilter, AclBinding)
        )
        for done in self.admin.delete_acls(gone).values():
            done.result(30)
        wait_until(lambda: not set(bindings) & set(self._rights(user)), what=f"the end of rights of {user} on {name}")

    def security(
        self, protocol: Protocol, user: str, password: str = "", mechanism: Mechanism = "SCRAM-SHA-512"
    ) -> dict[str, Any]:
        """Return overrides for `settings_for` that connect as this user, trusting our authority.

        Args:
            protocol: which listener.
            user: for SSL the name in the client certificate, else the SASL user.
            password: for SASL.
            mechanism: for SASL.
        """
        overrides: dict[str, Any] = {
            "kafka.bootstrap_servers": self.address(protocol),
            "kafka.security.protocol": protocol,
        }
        if protocol.endswith("SSL"):
            overrides["kafka.security.ca"] = self.authority.certificate
        if protocol == "SSL":
            own = self.authority.issue(user)  # whose holder is this user
            return {**overrides, "kafka.security.certificate": own.certificate, "kafka.security.key": own.key}
        return {
            **overrides,
            "kafka.security.mechanism": mechanism,
            "kafka.security.username": user,
            "kafka.security.password": password,
        }

    def _rights(self, user: str) -> list[AclBinding]:
        any_resource = (ResourceType.ANY, None, ResourcePatternType.ANY)
        every = AclBindingFilter(*any_resource, f"User:{user}", None, AclOperation.ANY, AclPermissionType.ANY)
        found: list[AclBinding] = self.admin.describe_acls(every).result(30)
        return found

    @staticmethod
    def _binding(kind: type, user: str, resource: Resource, name: str, operation: str, prefixed: bool) -> Any:
        pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
        return kind(
            RESOURCES[resource],
            CLUSTER_NAME if resource == "cluster" else name,
            pattern,
            f"User:{user}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )

    def _listeners(self, operator: int, controller: int) -> dict[str, str]:
        open_ones = {"PLAINTEXT": operator, **self._ports}
        own = [f"{name}://{LOOPBACK}:{port}" for name, port in open_ones.items()]
        protocols = [f"{name}:{'SASL_SSL' if name == OUT_OF_DATE else name}" for name in open_ones]
        return {
            "listeners": ",".join([*own, f"CONTROLLER://{LOOPBACK}:{controller}"]),
            "advertised.listeners": ",".join(own),
            "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
        }

    def _sasl(self) -> dict[str, str]:
        properties = {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
        for listener in ("sasl_plaintext", "sasl_ssl", OUT_OF_DATE.lower()):
            prefix = f"listener.name.{listener}"
            users = f'user_{PLAIN_USER}="{self.plain_password}"'
            properties[f"{prefix}.plain.sasl.jaas.config"] = f"{LOGIN}.plain.PlainLoginModule required {users};"
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                properties[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{LOGIN}.scram.ScramLoginModule required;"
        return properties


# The plain listener and the controller's have no users: who comes there is ANONYMOUS.
_ACCESS: Mapping[str, str] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def _tls(server: Certificate, authority: Authority) -> dict[str, str]:
    return {
        **_keystore(server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate_file),
        "listener.name.ssl.ssl.client.auth": "required",
        # A certificate's holder is called as its common name.
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
    }


def _keystore(server: Certificate, prefix: str = "") -> dict[str, str]:
    return {f"{prefix}ssl.keystore.type": "PEM", f"{prefix}ssl.keystore.location": str(server.as_keystore())}
