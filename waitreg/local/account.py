"""The account that Postgres runs under: our own, or an unprivileged one when we are root (Postgres refuses root)."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from wait_registry.errors import ConfigurationError

CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this host."""

    name: str
    uid: int
    gid: int


def unprivileged_account() -> Account | None:
    """Return the account to change to, or None when we aren't root and may stay who we are.

    Raises:
        ConfigurationError: we are root and there is no unprivileged user; run as another user.
    """
    if os.geteuid() != 0:
        return None
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise ConfigurationError(
        f"Postgres does not run as root and there is none of the users {', '.join(CANDIDATES)} to run it: "
        "start this as an ordinary user"
    )


def unreachable_part(path: Path) -> Path | None:
    """Return the first folder above ``path`` (itself included) that other users may not enter, None when all may."""
    for part in (*reversed(path.resolve().parents), path.resolve()):
        if part.is_dir() and not part.stat().st_mode & stat.S_IXOTH:
            return part
    return None
