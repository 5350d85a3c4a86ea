"""Who runs Postgres, and which folders that account can reach."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.reachable import reachable
from wait_registry.local.account import unprivileged_account, unreachable_part


def test_root_changes_to_an_unprivileged_account_and_others_stay_who_they_are() -> None:
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
