"""A process that connects to a port of Spark's driver before the one for which the port is meant."""

from __future__ import annotations

import socket
from typing import Any

import pyspark.util
import pytest

WRONG_SECRET = b"\0\0\0\1x"


def take_first_result(patch: pytest.MonkeyPatch) -> None:
    """Have another connection accepted first where Spark offers the result of the next query."""
    connect = pyspark.util.local_connect_and_auth

    def late(port: Any, secret: Any) -> Any:
        patch.setattr("pyspark.util.local_connect_and_auth", connect)
        with socket.create_connection(("127.0.0.1", int(port)), 10) as other:
            other.sendall(WRONG_SECRET)
            while other.recv(64):  # until Spark closes it
                pass
        return connect(port, secret)

    patch.setattr("pyspark.util.local_connect_and_auth", late)
