"""How the gRPC handler keeps, spreads and renews its connections, and whom it trusts; all servers are real."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import grpc
import pytest
from pydantic import SecretStr

from processor.handlers.grpc import GrpcHandler
from tests.support.certificates import Authority, Certificate
from tests.support.grpc_service import GrpcService, call_until, serving
from tests.unit.processor.parts import RECORD
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.settings.grpc import GrpcHandlerSettings
from waitreg.local.ports import LOOPBACK, free_ports

LIMIT_S = 60.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """The authority that the handler trusts."""
    return Authority(tmp_path, "our-authority")


def shown(own: Certificate, clients: Authority | None = None) -> grpc.ServerCredentials:
    """Return what a server shows, and whose clients it demands."""
    roots = None if clients is None else clients.certificate.encode()
    return grpc.ssl_server_credentials([(own.key.encode(), own.certificate.encode())], roots, clients is not None)


async def call(service: GrpcService, **settings: object) -> None:
    handler = GrpcHandler(f"grpcs://{LOOPBACK}:{service.port}", GrpcHandlerSettings(**settings), LIMIT_S, 1)  # type: ignore[arg-type]
    try:
        await handler.open()
        await asyncio.wait_for(handler.call(RECORD), LIMIT_S)
    finally:
        await handler.close()


async def test_the_systems_store_is_trusted_by_default(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate_file))
    async with serving(tls=shown(authority.issue("right", f"IP:{LOOPBACK}"))) as service:
        await call(service)
    assert len(service.requests) == 1


async def test_a_store_in_a_folder_of_hashes_is_trusted(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "0123abcd.0").write_text(authority.certificate)
    (folder / "README").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent"))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    async with serving(tls=shown(authority.issue("right", f"IP:{LOOPBACK}"))) as service:
        await call(service)
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("signer", "name", "said"),
    [
        ("a-stranger", f"IP:{LOOPBACK}", "CERTIFICATE_VERIFY_FAILED"),
        ("our-authority", "DNS:elsewhere.example", "Hostname Verification Check failed"),
    ],
)
async def test_others_get_no_record(authority: Authority, tmp_path: Path, signer: str, name: str, said: str) -> None:
    theirs = authority if signer == "our-authority" else Authority(tmp_path, signer)
    async with serving(tls=shown(theirs.issue("wrong", name))) as service:
        with pytest.raises(TransientError, match=said):
            await call(service, ca=authority.certificate)
    assert service.requests == []


async def test_a_client_certificate_is_shown(authority: Authority) -> None:
    own = authority.issue("client")
    async with serving(tls=shown(authority.issue("right", f"IP:{LOOPBACK}"), authority)) as service:
        await call(service, ca=authority.certificate, certificate=own.certificate, key=SecretStr(own.key))
        assert len(service.requests) == 1
        with pytest.raises(TransientError, match="UNAVAILABLE"):
            await call(service, ca=authority.certificate)
    assert len(service.requests) == 1


@pytest.mark.parametrize("ca", ["-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----", "none", "é"])
async def test_a_ca_that_can_not_be_read_is_refused_at_the_start(ca: str) -> None:
    with pytest.raises(ConfigurationError, match=r"processor\.grpc\.ca can't be read"):
        await call(GrpcService(1), ca=ca)


@pytest.mark.parametrize(
    ("certificate", "key"),
    [("own", "another"), ("own", "encrypted"), ("own", "-----BEGIN PRIVATE KEY-----\nx"), ("-----BEGIN", "own")],
)
async def test_an_unusable_client_certificate_is_refused(authority: Authority, certificate: str, key: str) -> None:
    own, another = authority.issue("own"), authority.issue("another")
    keys = {"own": own.key, "another": another.key, "encrypted": encrypted(own)}
    chosen = {"own": own.certificate}.get(certificate, certificate)
    with pytest.raises(
        ConfigurationError, match=r"processor\.grpc\.certificate and processor\.grpc\.key can't be used"
    ):
        await call(GrpcService(1), ca=authority.certificate, certificate=chosen, key=SecretStr(keys.get(key, key)))


def encrypted(own: Certificate) -> str:
    """Return the key with a password."""
    command = ["openssl", "pkcs8", "-topk8", "-in", str(own.key_file), "-passout", "pass:hunter2"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


async def test_a_system_without_certificates_is_refused_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "absent"))
    with pytest.raises(ConfigurationError, match=r"no certificates to trust.*processor\.grpc\.ca"):
        await call(GrpcService(1))


ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


def handler_for(address: str, max_in_flight: int = 4) -> GrpcHandler:
    return GrpcHandler(address, GrpcHandlerSettings(), LIMIT_S, max_in_flight)


@asynccontextmanager
async def opened(handler: GrpcHandler) -> AsyncIterator[GrpcHandler]:
    await handler.open()
    try:
        async with asyncio.timeout(LIMIT_S):
            yield handler
    finally:
        await handler.close()


def handler_of_one_name(port: int) -> GrpcHandler:
    """Return the handler of a name, with the addresses that gRPC would find for it."""
    handler = handler_for(f"grpc://orders.test:{port}")
    assert handler.target == f"dns:///orders.test:{port}"
    handler.target = f"ipv4:{','.join(f'{address}:{port}' for address in ADDRESSES)}"
    return handler


async def test_calls_take_turns_among_the_servers_of_one_name() -> None:
    [port] = free_ports(1)
    async with AsyncExitStack() as running:
        servers = [await running.enter_async_context(serving(host=host, port=port)) for host in ADDRESSES]
        handler = handler_of_one_name(port)
        async with opened(handler):
            await call_until(handler, RECORD, lambda: all(server.requests for server in servers))
            before = [len(server.requests) for server in servers]
            for _ in range(30):
                await handler.call(RECORD)
    assert [len(server.requests) - number for server, number in zip(servers, before, strict=True)] == [10, 10, 10]


async def test_the_servers_that_remain_get_all_calls() -> None:
    [port] = free_ports(1)
    async with AsyncExitStack() as running:
        servers = [await running.enter_async_context(serving(host=host, port=port)) for host in ADDRESSES[1:]]
        handler = handler_of_one_name(port)
        async with opened(handler):
            async with serving(host=ADDRESSES[0], port=port) as leaving:
                await call_until(handler, RECORD, lambda: leaving.requests)
            await call_until(handler, RECORD, lambda: all(server.requests for server in servers))
            before = sum(len(server.requests) for server in servers)
            await call_until(handler, RECORD, lambda: sum(len(server.requests) for server in servers) == before + 30)


async def test_a_server_that_is_away_is_tried_about_once_a_second() -> None:
    """By default the eighth connection begins after more than half a minute, and later ones after two more."""
    connections, eight = 0, asyncio.Event()

    def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()
        if connections == 8:
            eight.set()

    away = await asyncio.start_server(refuse, LOOPBACK, 0)
    async with away, opened(handler_for(f"grpc://{LOOPBACK}:{away.sockets[0].getsockname()[1]}")) as handler:
        calls = asyncio.create_task(call_until(handler, RECORD, eight.is_set))
        await asyncio.wait_for(eight.wait(), 30)
        await calls


async def test_a_proxy_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://{LOOPBACK}:{free_ports(1)[0]}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("no_grpc_proxy", raising=False)
    async with serving() as service, opened(handler_for(service.address)) as handler:
        await handler.call(RECORD)
    assert len(service.requests) == 1


async def test_a_server_that_vanishes_is_noticed_by_its_missing_acknowledgments() -> None:
    """TCP_USER_TIMEOUT is set; the kernel would try for a quarter of an hour without."""
    async with serving() as service, opened(handler_for(service.address)) as handler:
        await handler.call(RECORD)
        (one,) = connections_to(service.port)
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000


def connections_to(port: int) -> list[socket.socket]:
    """Return this process's own connections to a port."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # no socket, not connected, or closed by now
            one = socket.socket(fileno=os.dup(int(descriptor.name)))
            if one.getpeername()[1:2] == (port,):
                found.append(one)
    return found
