"""What the console takes of others: no Postgres for a page without rows, and no connection that isn't used."""

from __future__ import annotations

import socket
from http.client import HTTPConnection

import pytest
from pydantic import SecretStr

from console import service
from tests.support.console import running_console
from wait_registry.local.ports import LOOPBACK, free_ports
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.root import Settings


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
