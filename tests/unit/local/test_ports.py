"""Ports are free when they are handed out, and never the same twice."""

from __future__ import annotations

import random
import socket

import pytest

from wait_registry.errors import ConfigurationError
from wait_registry.local.ports import HIGHEST, LOOPBACK, LOWEST, free_ports, is_free


def test_a_port_that_is_listened_on_is_not_free() -> None:
    with socket.socket() as server:
        server.bind((LOOPBACK, 0))
        server.listen()
        assert not is_free(server.getsockname()[1])


def test_ports_are_different_free_and_below_those_of_outgoing_connections() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20
    assert all(LOWEST <= port < HIGHEST and is_free(port) for port in ports)


def test_a_taken_port_is_passed_over() -> None:
    (first,) = free_ports(1, random.Random(7))
    with socket.socket() as server:
        server.bind((LOOPBACK, first))
        server.listen()
        assert first not in free_ports(5, random.Random(7))


def test_more_ports_than_there_are_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ports were free"):
        free_ports(HIGHEST - LOWEST + 1)
