"""A certified OpenID provider on Node, as a child process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from tests.support.node_packages import printed_events, require_node
from tests.support.waiting import wait_until
from wait_registry.local.child import GuardedChild, Program

SERVER = Path(__file__).parent / "oidc_provider" / "server.js"
CLIENT_ID, CLIENT_SECRET = "console", "secret: of %the+console"


class OidcProvider:
    """One that runs; ``issuer`` is its address.

    Args:
        printed: the file that it writes.
        child: the process.
    """

    def __init__(self, printed: Path, child: GuardedChild) -> None:
        wait_until(lambda: printed_events(printed, "port") or child.exit_status is not None, what="the OpenID provider")
        assert child.exit_status is None, printed.read_text("utf-8")
        self.port: int = printed_events(printed, "port")[0]["port"]
        self.issuer = f"http://127.0.0.1:{self.port}"

    def spoil(self, fault: str) -> None:
        """Have its ID tokens spoiled from now on, see server.js; ``none`` ends this."""
        with urlopen(Request(f"{self.issuer}/fault/{fault}", method="POST"), timeout=30) as answer:
            assert answer.status == 204


@contextmanager
def oidc_provider(folder: Path, accounts: Mapping[str, Sequence[str]], port: int = 0) -> Iterator[OidcProvider]:
    """Run one, with new keys, until the block ends.

    Args:
        folder: where it may write.
        accounts: the groups of each account; all passwords are right.
        port: 0 for any free one.
    """
    node, modules = require_node("oidc_provider")
    printed = folder / "provider.log"
    environment = {"PORT": str(port), "MODULES": str(modules), "ACCOUNTS": json.dumps(accounts)}
    child = GuardedChild(Program([node, str(SERVER)], printed, folder, environment))
    try:
        yield OidcProvider(printed, child)
    finally:
        child.kill()
