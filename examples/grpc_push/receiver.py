"""A service that gets orders from wait-registry: `python receiver.py [PORT]`."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from waitreg_handler.v1.handler_pb2 import Discard, HandleRequest, HandleResponse
from waitreg_handler.v1.handler_pb2_grpc import HandlerServicer, add_HandlerServicer_to_server


class Orders(HandlerServicer):  # type: ignore[misc]
    """Charges each order once. Every tenth is answered "busy" at its first attempt."""

    def __init__(self) -> None:
        self._charged: set[str] = set()

    async def Handle(self, request: HandleRequest, context: grpc.aio.ServicerContext) -> HandleResponse:  # noqa: N802
        """Get one attempt at one record."""
        if not request.HasField("value"):
            return HandleResponse(discard=Discard(reason="the order was deleted"))
        try:
            order = json.loads(request.value)["order"]
        except (ValueError, KeyError, TypeError):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the value is no order")
        if order % 10 == 0 and request.attempt == 1:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "busy", (asks_for_pause(0.5),))
        # In a database, in one transaction with the charge: the same record may come again.
        if request.idempotency_key in self._charged:
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, "charged before")
        self._charged.add(request.idempotency_key)
        print(f"charged order {order}, attempt {request.attempt}", flush=True)
        return HandleResponse()


def asks_for_pause(seconds: float) -> tuple[str, bytes]:
    """Return the trailer that asks the processor to wait before the next attempt."""
    status = Status(code=grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], message="busy")
    info = RetryInfo()
    info.retry_delay.FromMilliseconds(round(seconds * 1000))
    status.details.add().Pack(info)
    return "grpc-status-details-bin", status.SerializeToString()


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    server: Any = grpc.aio.server()
    add_HandlerServicer_to_server(Orders(), server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    print(f"listening on 127.0.0.1:{port}", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 50051))
