"""What `waitreg doctor` says about a handler's URL has no password in it, whether somebody answers there or not."""

from __future__ import annotations

import socket

import pytest

from wait_registry.cli.checks.settings import handler
from wait_registry.settings.loading import load_settings


@pytest.mark.parametrize("answers", [True, False])
def test_a_url_is_shown_without_its_password(answers: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if not answers:
            server.close()
        url = f"http://shop:hunter2@127.0.0.1:{port}/orders"
        (line,) = handler(load_settings({"processor.handler": url}, env={}))
    assert f"http://**********@127.0.0.1:{port}/orders" in str(line)
    assert ("can't be connected to" in str(line)) is not answers
    assert "hunter2" not in str(line)
