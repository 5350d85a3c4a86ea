"""Asks brokers what they support, over a connection of its own that ends before any authentication."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wait_registry.errors import PermanentError
from wait_registry.kafka.api_versions import QUESTION, BrokerSupport, read_answer
from wait_registry.kafka.clients import Admin, plain_properties
from wait_registry.kafka.cluster import broker_addresses
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.tls import load_client_certificate

_LENGTH_BYTES: Final = 4
# A broker with every request and feature of today answers with 1 kB.
_MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class AskedBroker:
    """A broker, and what it supports: None if it can't be asked, for the reason in ``failure``.

    ``certificate`` is the one that it shows (DER), if the connection uses TLS.
    """

    address: str
    support: BrokerSupport | None
    certificate: bytes | None = None
    failure: str = ""


def ask_brokers(admin: Admin, kafka: KafkaSettings) -> list[AskedBroker]:
    """Ask each live broker, for `kafka.request_timeout_s` in all.

    Args:
        admin: knows the live brokers.
        kafka: how to connect.

    Raises:
        WaitRegistryError: the live brokers can't be listed, as `wait_registry.kafka.cluster.broker_addresses`.
    """
    addresses = broker_addresses(admin)
    deadline_s = time.monotonic() + kafka.request_timeout_s
    properties = plain_properties(kafka)
    try:
        context = _tls_context(properties)
    except (OSError, ValueError) as error:
        failure = f"kafka.security and kafka.librdkafka can't be used for it: {error}"
        return [AskedBroker(address, None, failure=failure) for address in addresses]
    return [ask_broker(address, context, deadline_s) for address in addresses]


def ask_broker(address: str, context: ssl.SSLContext | None, deadline_s: float) -> AskedBroker:
    """Ask one broker, until a time of `time.monotonic`, however slowly it answers."""
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        return AskedBroker(address, None, failure="no time was left")
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    certificate = None
    try:
        with ExitStack() as stack:
            connection = stack.enter_context(socket.create_connection((host, int(port)), left_s))
            if context is not None:
                connection = tls = stack.enter_context(context.wrap_socket(connection, server_hostname=host))
                certificate = tls.getpeercert(binary_form=True)
            connection.sendall(QUESTION)
            return AskedBroker(address, read_answer(_frame(connection, deadline_s)), certificate)
    except (OSError, PermanentError) as error:
        return AskedBroker(address, None, certificate, str(error) or type(error).__name__)


def _frame(connection: socket.socket, deadline_s: float) -> bytes:
    size = int.from_bytes(_read(connection, _LENGTH_BYTES, deadline_s))
    if size > _MOST_BYTES:
        raise PermanentError(f"the answer to ApiVersions would have {size} bytes: is this a Kafka listener?")
    return _read(connection, size, deadline_s)


def _read(connection: socket.socket, size: int, deadline_s: float) -> bytes:
    found = bytearray()
    while len(found) < size:
        if (left_s := deadline_s - time.monotonic()) <= 0:
            raise TimeoutError(f"timed out after {len(found)} of {size} bytes")
        connection.settimeout(left_s)
        more = connection.recv(size - len(found))
        if not more:
            raise ConnectionError(f"the broker closed the connection after {len(found)} of {size} bytes")
        found += more
    return bytes(found)


def _tls_context(properties: Mapping[str, Any]) -> ssl.SSLContext | None:
    """Return a context that trusts and shows what librdkafka does, None without TLS.

    Raises:
        OSError: certificate, key or authority can't be read.
        ValueError: as OSError.
    """
    if not str(properties["security.protocol"]).endswith("SSL"):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if "ssl.ca.pem" in properties:
        context.load_verify_locations(cadata=properties["ssl.ca.pem"])
    elif "ssl.ca.location" in properties:
        place = Path(properties["ssl.ca.location"])
        context.load_verify_locations(**{"capath" if place.is_dir() else "cafile": str(place)})
    else:
        context.load_default_certs()
    verified = str(properties.get("enable.ssl.certificate.verification", True)).lower() == "true"
    identified = properties.get("ssl.endpoint.identification.algorithm", "https") != "none"
    context.check_hostname = verified and identified
    context.verify_mode = ssl.CERT_REQUIRED if verified else ssl.CERT_NONE
    certificate, key = (_pem(properties, f"ssl.{name}") for name in ("certificate", "key"))
    if certificate is not None and key is not None:
        load_client_certificate(context, certificate, key, str(properties.get("ssl.key.password", "")))
    return context


def _pem(properties: Mapping[str, Any], name: str) -> str | None:
    if (text := properties.get(f"{name}.pem")) is not None:
        return str(text)
    location = properties.get(f"{name}.location")
    return None if location is None else Path(location).read_text("ascii")
