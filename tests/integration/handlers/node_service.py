"""A gRPC service on Node, which shares no code with the processor's client."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.handler_proto import PROTO, PROTO_ROOT
from tests.support.node_packages import NodeProgram


class NodeService(NodeProgram):
    """One that runs on a port, 0 for any free one; ``environment`` has the variables of TLS, see server.js."""

    def __init__(self, folder: Path, port: int = 0, environment: Mapping[str, str] | None = None) -> None:
        proto = {"PORT": str(port), "PROTO": PROTO, "PROTO_ROOT": str(PROTO_ROOT)}
        super().__init__("grpc_node", folder, {**proto, **(environment or {})})

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls so far."""
        return self.events("topic")
