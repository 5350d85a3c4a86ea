"""What the console takes of others: few connections to Postgres; requests that never end hold up no others."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from http.client import HTTPConnection

import pytest
from pydantic import SecretStr

from tests.support.console import ask, running_console
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.tree import Settings
from waitreg.console import service
from waitreg.console.http import forms
from waitreg.local.ports import LOOPBACK, free_ports


def test_help_is_there_without_postgres() -> None:
    (port,) = free_ports(1)
    url = SecretStr(f"postgresql://{LOOPBACK}:{port}/nothing")
    seen = {}
    with running_console(Settings(postgres=PostgresSettings(url=url))) as console_port:
        for path in ("/help", "/"):
            connection = HTTPConnection(LOOPBACK, console_port, timeout=30)
            connection.request("GET", path)
            seen[path] = connection.getresponse().status
            connection.close()
    assert seen == {"/help": 200, "/": 503}


@pytest.mark.parametrize(
    "sent", [b"", b"GET /help HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /help HTTP/1.1\r\nHost: loc"]
)
def test_connections_without_requests_are_closed(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "IDLE_S", 0.2)
    with running_console(Settings()) as port, socket.create_connection((LOOPBACK, port), timeout=30) as connection:
        connection.sendall(sent)
        while connection.recv(65_536):
            pass


MANY = 100
HEAD = b"GET /help HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: "
BODY = (
    b"POST /theme HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 100\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\ntheme="
)


def test_unfinished_requests_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "_FORM_S", 1.0)
    with running_console(Settings()) as port, ExitStack() as opened:

        def begin(request: bytes) -> socket.socket:
            connection = opened.enter_context(socket.create_connection((LOOPBACK, port), timeout=60))
            connection.sendall(request)
            return connection

        for _ in range(MANY):
            begin(HEAD)
        slow = [begin(BODY) for _ in range(MANY)]
        assert ask(port, "/help").status == 200
        for connection in slow:
            assert connection.recv(1000).startswith(b"HTTP/1.1 408 ")
        assert ask(port, "/help").status == 200
