"""What a local server needs: free ports, and an account that can reach its folders."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.support.own_postgres import reachable
from wait_registry.errors import ConfigurationError
from wait_registry.local.account import unprivileged_account, unreachable_part
from wait_registry.local.ports import HIGHEST, LOOPBACK, LOWEST, free_ports, is_free


def test_ports_are_different_free_and_below_those_of_outgoing_connections() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20
    assert all(LOWEST <= port < HIGHEST and is_free(port) for port in ports)


def test_a_held_port_is_passed_over_but_a_server_may_bind_it() -> None:
    (port,) = free_ports(1)
    with pytest.raises(OSError, match="in use"), socket.socket() as other:
        other.bind((LOOPBACK, port))
    with socket.create_server((LOOPBACK, port)):
        assert not is_free(port)


def test_more_ports_than_there_are_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ports were free"):
        free_ports(HIGHEST - LOWEST + 1)


def test_only_root_changes_to_an_unprivileged_account() -> None:
    account = unprivileged_account()

    if os.geteuid() == 0:
        assert account is not None
        assert account.uid != 0
    else:
        assert account is None


def test_the_outermost_closed_folder_is_named(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    closed = open_folder / "closed"
    inner = closed / "inner"
    inner.mkdir(parents=True)
    reachable(tmp_path)
    for folder in (open_folder, inner):
        folder.chmod(0o755)
    if unreachable_part(tmp_path) is not None:
        pytest.skip("this host keeps its temporary folders closed to other users")
    closed.chmod(0o700)

    assert unreachable_part(open_folder) is None
    assert unreachable_part(inner) == closed.resolve()
