"""The lines of console.users, as the command prints them."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from console.access.passwords import Passwords
from wait_registry.cli.main import main


def test_a_piped_password_becomes_a_line_that_lets_its_name_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("a long one\n"))
    assert main(["console", "--password-of", "alice"]) == 0
    users = tmp_path / "users"
    users.write_text(capsys.readouterr().out)
    assert Passwords(users).are_of("alice", "a long one")
    assert not Passwords(users).are_of("alice", "")


def test_an_empty_password_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert main(["console", "--password-of", "alice"]) == 2
    assert "the password of 'alice' is empty" in capsys.readouterr().err
