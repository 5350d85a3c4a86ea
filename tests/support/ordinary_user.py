"""What an ordinary user of the host would see: tests may run as root, whom no permission binds."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from pathlib import Path

from wait_registry.local.account import unprivileged_account


def as_ordinary_user(work: Callable[[], str], folder: Path) -> str:
    """Do some work in a child process whose current folder no user may enter; return what it returned.

    ``work`` is called in a fork of this process: what it needs is imported already. What it raises comes back as a
    traceback, text too.
    """
    account = unprivileged_account()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            os.chdir(folder)
            folder.chmod(0)
            if account is not None:
                os.setgroups([])
                os.setgid(account.gid)
                os.setuid(account.uid)
            said = work()
        except BaseException:  # noqa: BLE001 - the child must not become a second test run
            said = traceback.format_exc()
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    folder.chmod(0o700)
    return said
