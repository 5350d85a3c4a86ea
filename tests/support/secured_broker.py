"""A broker that asks who one is: SASL and TLS listeners, users, certificates and access control, all for real.

Its plain listener is the operator's: a client there may do everything. The users of the others may do nothing
but what `SecuredBroker.grant` gives them.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
from waitreg.local.broker import EmbeddedBroker
from waitreg.local.ports import LOOPBACK, free_ports

Protocol: TypeAlias = Literal["SASL_PLAINTEXT", "SASL_SSL", "SSL"]
Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
Resource: TypeAlias = Literal["topic", "group", "transactional_id", "cluster"]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# A listener whose certificate is out of date.
OUT_OF_DATE = "OUT_OF_DATE"
# By listener: its protocol.
LISTENERS = {"SASL_PLAINTEXT": "SASL_PLAINTEXT", "SASL_SSL": "SASL_SSL", "SSL": "SSL", OUT_OF_DATE: "SASL_SSL"}
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
    """One running broker with a listener for each protocol."""

    def __init__(
        self, authority: Authority, other_authority: Authority, operator: str, ports: Mapping[str, int]
    ) -> None:
        """Describe it.

        Args:
            authority: has signed the broker's certificates, and signs those of users.
            other_authority: is trusted by no side.
            operator: the address without authentication, where everything is allowed.
            ports: of the other listeners.
        """
        self.authority = authority
        self.other_authority = other_authority
        self.operator = operator
        self._ports = ports
        self.admin = AdminClient({"bootstrap.servers": operator})

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
        bindings = _bindings(AclBinding, user, resource, name, operations, prefixed)
        for done in self.admin.create_acls(bindings).values():
            done.result(30)
        wait_until(lambda: set(bindings) <= set(self._rights(user)), what=f"the rights of {user} on {name}")

    def revoke(
        self, user: str, resource: Resource, name: str, operations: Iterable[str], *, prefixed: bool = False
    ) -> None:
        """Take rights away again; returns when the broker knows."""
        gone, bindings = (
            _bindings(kind, user, resource, name, operations, prefixed) for kind in (AclBindingFilter, AclBinding)
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


@contextmanager
def secured_broker_in(folder: Path) -> Iterator[SecuredBroker]:
    """Run a broker in a folder, where its certificates go too."""
    authority = Authority(folder, "test-authority")
    server = authority.issue("broker", f"IP:{LOOPBACK}")
    stale = authority.issue("out-of-date", f"IP:{LOOPBACK}", expired=True)
    operator, controller, *others = free_ports(2 + len(LISTENERS))
    ports = dict(zip(LISTENERS, others, strict=True))
    properties = {
        **_listeners({"PLAINTEXT": operator, **ports}, controller),
        **_tls(server, authority),
        **_keystore(stale, f"listener.name.{OUT_OF_DATE.lower()}."),
        **_sasl(),
        # The plain listener and the controller's have no users: who comes there is ANONYMOUS.
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    broker = EmbeddedBroker(folder / "broker", (operator, controller), properties=properties)
    try:
        broker.start()
        yield SecuredBroker(authority, Authority(folder, "another-authority"), broker.bootstrap_servers, ports)
    finally:
        broker.kill()
        shutil.rmtree(broker.directory, ignore_errors=True)


def _bindings(kind: type, user: str, resource: Resource, name: str, allowed: Iterable[str], prefix: bool) -> list[Any]:
    pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
    place = (RESOURCES[resource], CLUSTER_NAME if resource == "cluster" else name, pattern)
    return [kind(*place, f"User:{user}", "*", AclOperation[each], AclPermissionType.ALLOW) for each in allowed]


def _listeners(open_ones: Mapping[str, int], controller: int) -> dict[str, str]:
    own = [f"{name}://{LOOPBACK}:{port}" for name, port in open_ones.items()]
    protocols = [f"{name}:{LISTENERS.get(name, name)}" for name in open_ones]
    return {
        "listeners": ",".join([*own, f"CONTROLLER://{LOOPBACK}:{controller}"]),
        "advertised.listeners": ",".join(own),
        "listener.security.protocol.map": ",".join([*protocols, "CONTROLLER:PLAINTEXT"]),
    }


def _sasl() -> dict[str, str]:
    properties = {"sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    for prefix in [f"listener.name.{name.lower()}" for name in LISTENERS if name != "SSL"]:
        users = f'user_{PLAIN_USER}="{secrets.token_hex(8)}"'
        properties[f"{prefix}.plain.sasl.jaas.config"] = f"{LOGIN}.plain.PlainLoginModule required {users};"
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            properties[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{LOGIN}.scram.ScramLoginModule required;"
    return properties


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
