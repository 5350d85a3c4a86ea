"""Answers of a worker, or of another server at its address, become errors with a fix."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.unit.connect.fake_worker import answering, refusing, rest
from wait_registry.errors import ConfigurationError, WaitRegistryError
from waitreg.connect.rest import WorkerUnavailable
from waitreg.local.ports import free_ports


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (401, b"", ConfigurationError, "connect.username"),
        (403, b"", ConfigurationError, "connect.username"),
        (404, b"<html>", ConfigurationError, "is connect.url the address of a worker?"),
        (400, refusing("no such thing"), ConfigurationError, "refuses it (400): no such thing"),
        (405, b"405: Not Allowed", ConfigurationError, "worker does (405: Not Allowed): is connect.url"),
        (409, refusing("rebalance"), WorkerUnavailable, "can't at the moment (409): rebalance"),
        (500, refusing("timed out"), WorkerUnavailable, "can't at the moment (500): timed out"),
        (503, b"plain", WorkerUnavailable, "plain"),
        (200, b"<html>hello</html>", ConfigurationError, "something else than JSON"),
    ],
)
def test_an_unusable_answer_has_a_fix(status: int, body: bytes, error: type[WaitRegistryError], words: str) -> None:
    with answering(status, body) as worker, pytest.raises(error) as raised:
        rest(worker.address).states()
    assert (type(raised.value), words in str(raised.value)) == (error, True), raised.value


def test_no_answer_is_an_outage() -> None:
    with pytest.raises(WorkerUnavailable, match=r"start it, or correct connect\.url"):
        rest(f"http://127.0.0.1:{free_ports(1)[0]}").states()


def test_the_next_worker_is_asked_when_one_does_not_answer() -> None:
    closed = f"http://127.0.0.1:{free_ports(1)[0]}"
    with answering(503, b"not well") as unwell, answering(200, b"{}") as well:
        several = rest(f"{closed}, {unwell.address},{well.address}/")
        assert several.states() == several.states() == {}
        assert len(unwell.calls) == 1, "the one that answered is asked first from then on"
        with pytest.raises(WorkerUnavailable):
            rest(f"{closed},{unwell.address}").states()


def test_every_request_has_the_credentials_and_the_path_of_the_url() -> None:
    with answering(200, b"{}") as worker:
        assert rest(f"{worker.address}/behind/", username="me", password="pä:ss").states() == {}
        (call,) = worker.calls
    assert call.path == "/behind/connectors"
    assert base64.b64decode(call.headers["Authorization"].removeprefix("Basic ")).decode() == "me:pä:ss"


def test_a_connector_without_a_status_is_omitted() -> None:
    with answering(200, json.dumps({"new": {"info": {"config": {}}}}).encode()) as worker:
        assert rest(worker.address).states() == {}


def test_a_worker_with_tls_needs_a_trusted_certificate(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path, "ours"), Authority(tmp_path, "strangers")
    issued = authority.issue("worker", "IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate_file, issued.key_file)
    with answering(200, b"{}", context) as worker:
        url = worker.address
        assert rest(url, ca=authority.certificate).states() == {}
        with pytest.raises(ConfigurationError, match=r"isn't trusted .* set connect\.ca_file"):
            rest(url, ca=stranger.certificate).states()
