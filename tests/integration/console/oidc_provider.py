"""A certified OpenID provider on Node."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.request import Request, urlopen

from tests.support.node_packages import NodeProgram

CLIENT_ID, CLIENT_SECRET = "console", "secret: of %the+console"


class OidcProvider(NodeProgram):
    """One that runs with new keys.

    Args:
        folder: where it may write.
        accounts: the groups of each account; all passwords are right.
        port: 0 for any free one.
    """

    def __init__(self, folder: Path, accounts: Mapping[str, Sequence[str]], port: int = 0) -> None:
        super().__init__("oidc_provider", folder, {"PORT": str(port), "ACCOUNTS": json.dumps(accounts)})

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spoil(self, fault: str) -> None:
        """Have its ID tokens spoiled from now on, see server.js; ``none`` ends this."""
        with urlopen(Request(f"{self.issuer}/fault/{fault}", method="POST"), timeout=30) as answer:
            assert answer.status == 204
