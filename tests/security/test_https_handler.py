"""Certificates: an `https://` handler gets records only with the right one; each listener of a broker shows its own."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from tests.conftest import SettingsFactory
from tests.support.certificates import Authority, Certificate
from tests.support.http_service import Answer, HttpService
from tests.support.naming import Names
from tests.support.processes import Services
from tests.support.secured_broker import Protocol, SecuredBroker
from tests.support.topics import Topics
from wait_registry.kafka.broker_question import ask_brokers
from wait_registry.kafka.broker_rules import release
from wait_registry.kafka.clients import admin
from wait_registry.settings.loading import load_settings
from wait_registry.tls import end_of
from waitreg.local.ports import LOOPBACK

RIGHT, STRANGER, MISNAMED = "right", "stranger", "misnamed"
QUICK = {"processor.max_attempts": 1, "processor.handler_timeout_s": 20, "processor.ttl_s": 120}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """The authority in the processors' store."""
    return Authority(tmp_path, "the-stores-authority")


@pytest.fixture
def servers(tmp_path: Path, authority: Authority) -> Iterator[dict[str, HttpService]]:
    """One that shows the right certificate, one with another authority's, one with another host's."""
    certificates = {
        RIGHT: authority.issue(RIGHT, f"IP:{LOOPBACK}"),
        STRANGER: Authority(tmp_path, "another-authority").issue(STRANGER, f"IP:{LOOPBACK}"),
        MISNAMED: authority.issue(MISNAMED, "DNS:elsewhere.example"),
    }
    with ExitStack() as running:
        yield {name: running.enter_context(https(shown)) for name, shown in certificates.items()}


def https(shown: Certificate) -> HttpService:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(shown.certificate_file, shown.key_file)
    return HttpService(lambda call: Answer(), tls)


def test_only_a_server_with_the_right_certificate_gets_a_record(
    authority: Authority,
    servers: dict[str, HttpService],
    prepared: SettingsFactory,
    names: Names,
    topics: Topics,
    services: Services,
) -> None:
    settings = prepared(QUICK, 1)
    topics.produce(settings.processor.topics[0], [b"a secret of ours"])
    store = {"SSL_CERT_FILE": str(authority.certificate_file)}
    started = []
    for name, server in servers.items():
        own = {"group": names(name), "handler": f"{server.address}/orders"}
        one = settings.model_copy(update={"processor": settings.processor.model_copy(update=own)})
        started.append(services.start("processor", one, "--once", environment=store))
    for service in started:
        assert service.wait() == 0, service.log.read_text("utf-8")
    assert {name: [call.body for call in server.calls] for name, server in servers.items()} == {
        RIGHT: [b"a secret of ours"],
        STRANGER: [],
        MISNAMED: [],
    }
    letters = topics.read(settings.dead_letter.topic)
    said = {letter.text("WAIT_GROUP"): letter.text("DLQ_ERROR_MESSAGE") for letter in letters}
    assert set(said) == {names(STRANGER), names(MISNAMED)}
    for name, reason in ((STRANGER, "unable to get local issuer certificate"), (MISNAMED, "IP address mismatch")):
        message = said[names(name)]
        assert f"the certificate that {servers[name].address.removeprefix('https://')} shows is refused: " in message
        assert reason in message
        assert "SSL_CERT_FILE" in message


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL", "SSL"])
def test_each_listener_answers_and_shows_its_certificate(protocol: str, secured: SecuredBroker) -> None:
    password = "" if protocol == "SSL" else secured.add_user("asking")
    kafka = load_settings(secured.security(cast("Protocol", protocol), "asking", password), env={}).kafka
    [asked] = ask_brokers(admin(kafka), kafka)
    assert asked.failure == ""
    assert asked.support is not None
    assert release(asked.support) == "4.2"
    if protocol == "SASL_PLAINTEXT":
        assert asked.certificate is None
    else:
        assert asked.certificate is not None
        assert timedelta(0) < end_of(asked.certificate) - datetime.now(UTC) <= timedelta(days=2)


def test_a_certificate_that_is_not_trusted_is_the_reason_for_no_answer(secured: SecuredBroker) -> None:
    right = load_settings(secured.security("SSL", "asking"), env={}).kafka
    security = right.security.model_copy(update={"ca": secured.other_authority.certificate})
    [asked] = ask_brokers(admin(right), right.model_copy(update={"security": security}))
    assert asked.support is None
    assert "certificate verify failed" in asked.failure
