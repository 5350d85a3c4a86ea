"""When certificates end, as OpenSSL makes and reads them."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.certificate_ends import certificate_ends, expose_certificate_ends
from wait_registry.telemetry.exposition import MetricsRegistry
from wait_registry.tls import end_of, ends_of


def openssl(*arguments: str) -> str:
    return subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("days", ["2", "20000"], ids=["UTCTime", "GeneralizedTime, from 2050 on"])
def test_the_end_is_what_openssl_reads(days: str, tmp_path: Path) -> None:
    Authority(tmp_path, "skips without openssl")
    key, certificate = str(tmp_path / "k"), tmp_path / "c"
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=a"]
    openssl(*made, "-days", days, "-keyout", key, "-out", str(certificate))
    shown = openssl("x509", "-in", str(certificate), "-noout", "-enddate").strip().removeprefix("notAfter=")
    expected = datetime.strptime(shown, "%b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC)
    assert ends_of(f"text\n{certificate.read_text()}") == [expected]


@pytest.mark.parametrize("der", [b"", b"\x30", b"\x30\x82\x01", b"\x30\x03\x02\x01\x05"])
def test_bytes_that_are_no_certificate_are_refused(der: bytes) -> None:
    with pytest.raises(ValueError, match="aren't a certificate"):
        end_of(der)


def test_a_chain_ends_with_its_first_and_trust_with_its_last_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    issued, expired = authority.issue("issued"), authority.issue("expired", expired=True)
    both = issued.certificate + expired.certificate
    settings = Settings.model_validate({"kafka": {"security": {"ca": both, "certificate": both}}})
    ends = certificate_ends(settings)
    assert ends["kafka.security.ca"] == max(ends_of(both))
    assert ends["kafka.security.certificate"] == min(ends_of(both)) < ends["kafka.security.ca"]
    registry = MetricsRegistry()
    expose_certificate_ends(registry, settings)
    assert b'waitreg_certificate_end_timestamp_seconds{setting="kafka.security.ca"} 1' in registry.expose()
