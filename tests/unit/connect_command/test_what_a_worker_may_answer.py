"""Answers of a worker, and of what stands in its place, become errors that say what to do."""

from __future__ import annotations

import base64
import json
import logging
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.certificates import Authority, openssl_is_there
from wait_registry.cli.connect.rest import ConnectRest, SecretUnreadable, WorkerBusy, WorkerUnavailable
from wait_registry.cli.connect.watch import Watch
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.local.ports import free_ports
from wait_registry.settings.connect import ConnectSettings
from wait_registry.settings.loading import load_settings


class Answering(BaseHTTPRequestHandler):
    """Gives the server's one answer to every request, and keeps what it was asked."""

    def do_GET(self) -> None:
        self._answer(*self.server.answer)  # type: ignore[attr-defined]

    def do_POST(self) -> None:
        self._answer(*(self.server.posted or self.server.answer))  # type: ignore[attr-defined]

    def _answer(self, status: int, body: bytes) -> None:
        self.server.asked.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def answering(
    status: int, body: bytes, context: ssl.SSLContext | None = None, posted: tuple[int, bytes] | None = None
) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.answer, server.posted, server.asked = (status, body), posted, []  # type: ignore[attr-defined]
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def rest(url: str, **given: str) -> ConnectRest:
    return ConnectRest(
        load_settings({"connect.url": url, **{f"connect.{k}": v for k, v in given.items()}}, env={}).connect
    )


def url_of(server: ThreadingHTTPServer, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{server.server_address[1]}"


def said(text: str) -> bytes:
    return json.dumps({"error_code": 1, "message": text}).encode()


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (401, b"", ConfigurationError, "connect.username"),
        (403, b"", ConfigurationError, "connect.username"),
        (404, b"<html>", ConfigurationError, "is connect.url the address of a worker?"),
        (400, said("no such thing"), ConfigurationError, "refuses it (400): no such thing"),
        (
            405,
            b"405: Method Not Allowed",
            ConfigurationError,
            "doesn't answer as a Kafka Connect worker does (405: Method Not Allowed): is connect.url the address of a",
        ),
        (500, said("ConfigException: Could not read properties from file"), SecretUnreadable, "connect.secrets.*"),
        (400, said("Could not read properties from file /a:b"), SecretUnreadable, "the worker's config.providers"),
        (500, said("ConfigException: no such thing"), ConfigurationError, "refuses it (500): ConfigException: no such"),
        (409, said("rebalance"), WorkerBusy, "busy: rebalance"),
        (
            500,
            said("Request cannot be completed because a rebalance is expected"),
            WorkerBusy,
            "a rebalance is expected",
        ),
        (500, said("timed out"), WorkerUnavailable, "can't at the moment (500): timed out"),
        (503, b"plain", WorkerUnavailable, "plain"),
        (200, b"<html>hello</html>", ConfigurationError, "something else than JSON"),
    ],
)
def test_an_answer_that_is_none_says_what_to_do(
    status: int, body: bytes, error: type[WaitRegistryError], words: str
) -> None:
    with answering(status, body) as server, pytest.raises(error) as raised:
        rest(url_of(server)).states()
    assert words in str(raised.value)
    assert type(raised.value) is error


def test_nobody_there_is_an_outage() -> None:
    with pytest.raises(WorkerUnavailable, match=r"start it, or correct connect\.url"):
        rest(f"http://127.0.0.1:{free_ports(1)[0]}").states()


def test_of_several_workers_the_next_is_asked_when_one_does_not_answer() -> None:
    nobody = f"http://127.0.0.1:{free_ports(1)[0]}"
    with answering(503, b"not well") as unwell, answering(200, b"{}") as well:
        asked = rest(f"{nobody}, {url_of(unwell)},{url_of(well)}/")
        assert asked.states() == {}
        assert asked.states() == {}
        assert len(unwell.asked) == 1, "whoever answered is asked first from then on"  # type: ignore[attr-defined]
        with pytest.raises(WorkerUnavailable):
            rest(f"{nobody},{url_of(unwell)}").states()


def test_a_busy_worker_is_no_reason_to_ask_another() -> None:
    with answering(409, said("rebalance")) as busy, answering(200, b"{}") as other:
        with pytest.raises(WorkerBusy):
            rest(f"{url_of(busy)},{url_of(other)}").states()
        assert other.asked == []  # type: ignore[attr-defined]


def test_who_we_are_is_told_with_every_request_and_a_path_before_the_api_is_kept() -> None:
    with answering(200, b"{}") as server:
        assert rest(f"{url_of(server)}/behind/", username="me", password="pä:ss").states() == {}
        ((path, headers),) = server.asked  # type: ignore[attr-defined]
    assert path.startswith("/behind/connectors?")
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode() == "me:pä:ss"


def test_what_is_only_half_there_is_passed_over() -> None:
    with answering(200, json.dumps({"new": {"info": {"config": {}}}}).encode()) as server:
        assert rest(url_of(server)).states() == {}


@pytest.mark.skipif(not openssl_is_there(), reason="no `openssl` command to make certificates with")
def test_a_worker_behind_tls_must_be_who_it_says(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path, "ours"), Authority(tmp_path, "strangers")
    shown = authority.issue("worker", "IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate_file, shown.key_file)
    with answering(200, b"{}", context) as server:
        assert rest(url_of(server, "https"), ca=authority.certificate).states() == {}
        with pytest.raises(ConfigurationError, match=r"isn't trusted .* set connect\.ca_file"):
            rest(url_of(server, "https"), ca=stranger.certificate).states()


def failed_tasks_of(states: Mapping[str, str]) -> bytes:
    """Return a worker's answer: connectors in these states, each with a task that has failed."""

    def connector(name: str, state: str) -> dict[str, object]:
        task = {"id": 0, "state": "FAILED", "worker_id": "w", "trace": "broken"}
        status = {"name": name, "type": "sink", "connector": {"state": state, "worker_id": "w"}, "tasks": [task]}
        return {"status": status, "info": {"config": {}}}

    return json.dumps({name: connector(name, state) for name, state in states.items()}).encode()


def watching(server: ThreadingHTTPServer) -> Watch:
    return Watch(rest(url_of(server)), ConnectSettings(), lambda: 0.0)


def test_a_watch_restarts_what_has_failed_and_leaves_what_a_person_has_paused_or_stopped() -> None:
    body = failed_tasks_of({"wait.sink": "RUNNING", "dead_letter.sink": "PAUSED", "expired.source": "STOPPED"})
    with answering(200, body) as server:
        watch = watching(server)
        assert watch.run_once().restarted == ("wait.sink",)
        assert [path.split("/")[2] for path, _ in server.asked if "restart" in path] == ["wait.sink"]  # type: ignore[attr-defined]


def test_what_is_restarted_is_not_told_as_running_in_the_same_breath(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wait_registry.cli.connect.watch")
    with answering(200, failed_tasks_of({"wait.sink": "RUNNING"})) as server:
        watch = watching(server)
        assert watch.run_once().restarted == ("wait.sink",)
        (told,) = caplog.records
        assert "restarted wait.sink; it had failed" in told.getMessage()


def test_what_fails_and_is_not_restarted_is_told_as_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "wait_registry.cli.connect.watch")
    refused = 500, said("ConfigException: Could not read properties from file")
    with answering(200, failed_tasks_of({"wait.sink": "RUNNING"}), posted=refused) as server:
        look = watching(server).run_once()
    assert (look.trouble, look.restarted) == (None, ())
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "can't be restarted" in caplog.records[0].getMessage()
    assert "wait.sink is RUNNING, 1 task FAILED" in caplog.records[1].getMessage()
