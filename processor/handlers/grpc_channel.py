"""Connections to a gRPC service: the address in the setting, TLS, and how connections are kept and renewed."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import grpc
from grpc import aio

from processor.handlers.host import can_be_looked_up
from wait_registry.errors import ConfigurationError
from wait_registry.settings.grpc import GrpcHandlerSettings
from wait_registry.tls import load_client_certificate

_OPTIONS: Final[tuple[tuple[str, Any], ...]] = (
    # A name of several addresses: each gets a connection, and calls take turns.
    ("grpc.lb_policy_name", "round_robin"),
    # Servers close connections that ping more often than every 5 minutes. Keepalive also sets TCP_USER_TIMEOUT: a
    # server that vanished is noticed after 20 s without an acknowledgment, not after Linux's 15 minutes.
    ("grpc.keepalive_time_ms", 300_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # While a server is away, calls fail at once, and only a new connection ends that. By default the next one may
    # begin 2 minutes later, when all attempts at many records have failed.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # As the HTTP handler does, go straight to the address, whatever the variable http_proxy says.
    ("grpc.enable_http_proxy", 0),
    # Channels of one process share connections otherwise.
    ("grpc.use_local_subchannel_pool", 1),
)


def target_of(address: str) -> str:
    """Read ``processor.handler`` as the client will.

    Args:
        address: begins with ``grpc://`` or ``grpcs://``.

    Returns:
        The name to resolve, which may have several addresses; nothing is connected to.

    Raises:
        ConfigurationError: no record could ever be sent there; the message says why.
    """
    try:
        place = urlsplit(address)
        host, port = place.hostname, place.port
    except ValueError:
        raise _not_callable("host and port can't be read") from None
    if place.username is not None or place.path or place.query or place.fragment:
        raise _not_callable("it has more than host and port")
    if not host:
        raise _not_callable("it names no host")
    if not port:
        raise _not_callable("it names no port")
    if not can_be_looked_up(host):
        raise _not_callable(f"{host!r} is no host name and no address")
    return f"dns:///[{host}]:{port}" if ":" in host else f"dns:///{host.encode('idna').decode()}:{port}"


def open_channel(target: str, tls: bool, settings: GrpcHandlerSettings) -> aio.Channel:
    """Make a channel; it connects with the first call.

    Args:
        target: what gRPC resolves.
        tls: whether the address begins with ``grpcs://``.
        settings: certificates.

    Raises:
        ConfigurationError: there is no certificate to trust, or it can't be read.
    """
    if not tls:
        return aio.insecure_channel(target, options=_OPTIONS)
    key, chain = _client_certificate(settings)
    return aio.secure_channel(target, grpc.ssl_channel_credentials(_trusted(settings.ca), key, chain), options=_OPTIONS)


def _client_certificate(settings: GrpcHandlerSettings) -> tuple[bytes | None, bytes | None]:
    """Return key and chain; gRPC itself would fail every call with an unusable pair, without saying why."""
    if settings.key is None or settings.certificate is None:
        return None, None
    key, chain = settings.key.get_secret_value().encode(), settings.certificate.encode()
    try:
        load_client_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), chain.decode(), key.decode())
    except ssl.SSLError as error:
        raise ConfigurationError(
            f"processor.grpc.certificate and processor.grpc.key can't be used: {error}. Set them to the PEM text "
            "of a client certificate's chain and of its key, unencrypted"
        ) from error
    return key, chain


def _trusted(ca: str | None) -> bytes:
    """Return the certificates to trust; gRPC by itself would take a list of its own, not the system's store."""
    if ca is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=ca)
        except (ssl.SSLError, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"processor.grpc.ca can't be read: {error}. Set it to the PEM text of the certificates to trust"
            ) from error
        return ca.encode()
    store = b"".join(path.read_bytes() for path in _system_store())
    if not store:
        raise ConfigurationError(
            "processor.handler is a grpcs:// address, and this system has no certificates to trust. Install "
            "ca-certificates, or set processor.grpc.ca to those of the service's authority"
        )
    return store


def _system_store() -> list[Path]:
    """Return the files with OpenSSL's default certificates, or the one that the variable SSL_CERT_FILE names."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile is not None:
        return [Path(paths.cafile)]
    # Named by hashes, as OpenSSL looks them up; the folder may hold other files.
    return [] if paths.capath is None else sorted(Path(paths.capath).glob("????????.[0-9]"))


def _not_callable(seen: str) -> ConfigurationError:
    return ConfigurationError(
        f"processor.handler is a gRPC address that can't be called: {seen}. Expected grpc://host:port, or grpcs:// for "
        "TLS: check for an empty variable in it. (It isn't shown here, since it may hold a password.)"
    )
