"""A gRPC service on Node, which shares no code with the processor's client: a child process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.chosen_stack import skips_are_failures
from tests.support.handler_proto import PROTO, PROTO_ROOT
from tests.support.waiting import wait_until
from wait_registry.local.child import GuardedChild, Program

ROOT = Path(__file__).parents[2]
MODULES = ROOT / ".waitreg" / "tools" / "grpc_node" / "node_modules"
SERVER = Path(__file__).parent / "grpc_node" / "server.js"


class NodeService:
    """One that runs; ``port`` is where.

    Args:
        printed: the file that it writes.
        child: the process.
    """

    def __init__(self, printed: Path, child: GuardedChild) -> None:
        self._printed = printed
        self._child = child
        wait_until(lambda: self.events("port") or child.exit_status is not None, what="the service on Node")
        assert child.exit_status is None, printed.read_text("utf-8")
        self.port: int = self.events("port")[0]["port"]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events that have this member; `topic` is in each call."""
        complete, _, _ = self._printed.read_text("utf-8").rpartition("\n")
        lines = [json.loads(line) for line in complete.splitlines() if line.startswith("{")]
        return [line for line in lines if name in line]

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls so far."""
        return self.events("topic")

    def kill(self) -> None:
        """End it as a crash would."""
        self._child.kill()


def node() -> str:
    """Return the path of Node; without it or its packages the test is skipped, on a CI machine it fails."""
    found = shutil.which("node")
    if found is None or not MODULES.is_dir():
        missing = "NOT TESTED: Node or its packages are not here; `make grpc-node` gets the packages"
        if skips_are_failures():
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@contextmanager
def node_service(folder: Path, port: int = 0, environment: Mapping[str, str] | None = None) -> Iterator[NodeService]:
    """Run one until the block ends.

    Args:
        folder: where it may write.
        port: 0 for any free one.
        environment: the variables of TLS, see server.js.
    """
    printed = folder / "node.log"
    proto = {"PORT": str(port), "PROTO": PROTO, "PROTO_ROOT": str(PROTO_ROOT), "NODE_PATH": str(MODULES)}
    child = GuardedChild(Program([node(), str(SERVER)], printed, folder, {**proto, **(environment or {})}))
    try:
        yield NodeService(printed, child)
    finally:
        child.kill()
