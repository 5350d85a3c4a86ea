"""Requests that are never finished hold up no others, and don't last."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from console.http import forms
from tests.support.console import ask, running_console
from wait_registry.local.ports import LOOPBACK
from wait_registry.settings.root import Settings

MANY = 100
HEAD = b"GET /help HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: "
BODY = (
    b"POST /theme HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 100\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\ntheme="
)


def test_unfinished_requests_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "_BODY_S", 1.0)
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
