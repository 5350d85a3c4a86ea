"""A `grpcs://` handler sends records only to a server with the right certificate, and shows its own if it has one."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import grpc
import pytest
from pydantic import SecretStr

from processor.handlers.grpc import GrpcHandler
from tests.support.certificates import Authority, Certificate
from tests.support.grpc_service import GrpcService, serving
from tests.unit.processor.parts import RECORD
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.local.ports import LOOPBACK
from wait_registry.settings.grpc import GrpcHandlerSettings

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


async def test_a_server_that_the_ca_signed_gets_the_record(authority: Authority) -> None:
    async with serving(tls=shown(authority.issue("right", f"IP:{LOOPBACK}"))) as service:
        await call(service, ca=authority.certificate)
    assert [one.value for one in service.requests] == [RECORD.value]


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
async def test_another_server_gets_no_record(
    authority: Authority, tmp_path: Path, signer: str, name: str, said: str
) -> None:
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
async def test_a_client_certificate_that_can_not_be_used_is_refused_at_the_start(
    authority: Authority, certificate: str, key: str
) -> None:
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


async def test_a_system_without_certificates_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "absent"))
    with pytest.raises(ConfigurationError, match=r"no certificates to trust.*processor\.grpc\.ca"):
        await call(GrpcService(1))
