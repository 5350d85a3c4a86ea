"""Passwords of the console: a file with one line per name, ``name:scrypt hash``."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from pathlib import Path
from typing import Final

from wait_registry.errors import ConfigurationError

# RFC 7914 and OWASP's password storage cheat sheet: 16 MiB and some ten milliseconds for each try.
_COST: Final = {"n": 2**14, "r": 8, "p": 1}
_SALT_BYTES, _HASH_BYTES = 16, 32


def line_of(name: str, password: str) -> str:
    """Return the line of a name and its password.

    Raises:
        ConfigurationError: the name can't be in such a line, or the password is empty.
    """
    if not password:
        raise ConfigurationError(f"the password of {name!r} is empty: give one")
    if not name or ":" in name or not name.isprintable():
        raise ConfigurationError(f"{name!r} can't be a name: expected printable characters without a colon")
    salt = os.urandom(_SALT_BYTES)
    return f"{name}:{base64.b64encode(salt + _hash(password, salt)).decode()}"


class Passwords:
    """The names and hashes of a file.

    Raises:
        ConfigurationError: the file can't be read, or a line of it isn't one of `line_of`.
    """

    def __init__(self, file: Path) -> None:
        try:
            lines = file.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"console.users {file} can't be read: {error}") from error
        self._hashes = dict(_parse(file, number, line) for number, line in enumerate(lines, 1) if line.strip())

    def are_of(self, name: str, password: str) -> bool:
        """Return whether this is the password of this name; an unknown name takes as long."""
        known = self._hashes.get(name, bytes(_SALT_BYTES + _HASH_BYTES))
        same = hmac.compare_digest(known[_SALT_BYTES:], _hash(password, known[:_SALT_BYTES]))
        return same and name in self._hashes


def _parse(file: Path, number: int, line: str) -> tuple[str, bytes]:
    name, _, text = line.strip().partition(":")
    try:
        known = base64.b64decode(text, validate=True)
    except ValueError:
        known = b""
    if not name or len(known) != _SALT_BYTES + _HASH_BYTES:
        raise ConfigurationError(
            f"console.users {file}, line {number}: expected a line that `waitreg console --password-of NAME` "
            "has printed"
        )
    return name, known


def _hash(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, dklen=_HASH_BYTES, **_COST)
