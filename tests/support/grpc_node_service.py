"""A gRPC service on Node, which shares no code with the processor's client: a child process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.handler_proto import PROTO, PROTO_ROOT
from tests.support.node_packages import printed_events, require_node
from tests.support.waiting import wait_until
from wait_registry.local.child import GuardedChild, Program

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
        return printed_events(self._printed, name)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls so far."""
        return self.events("topic")

    def kill(self) -> None:
        """End it as a crash would."""
        self._child.kill()


@contextmanager
def node_service(folder: Path, port: int = 0, environment: Mapping[str, str] | None = None) -> Iterator[NodeService]:
    """Run one until the block ends.

    Args:
        folder: where it may write.
        port: 0 for any free one.
        environment: the variables of TLS, see server.js.
    """
    node, modules = require_node("grpc_node")
    printed = folder / "node.log"
    proto = {"PORT": str(port), "PROTO": PROTO, "PROTO_ROOT": str(PROTO_ROOT), "NODE_PATH": str(modules)}
    child = GuardedChild(Program([node, str(SERVER)], printed, folder, {**proto, **(environment or {})}))
    try:
        yield NodeService(printed, child)
    finally:
        child.kill()
