"""The gRPC handler: one call of waitreg_handler.v1.Handler/Handle per attempt."""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Final

from grpc import aio

from processor.handlers.forwarded_headers import ForwardedHeaders
from processor.handlers.grpc_channel import open_channel, target_of
from processor.handlers.grpc_messages import decode_response, encode_request, retry_delay_s
from processor.handlers.open_handler import CURRENT_ATTEMPT, OpenHandler
from wait_registry.errors import ConfigurationError, PermanentError, TransientError
from wait_registry.handler import Discard, HandlerResult, Record
from wait_registry.settings.grpc import GrpcHandlerSettings, GrpcStatus
from wait_registry.telemetry.tracing import HttpHeadersSource

METHOD: Final = "/waitreg_handler.v1.Handler/Handle"
TLS_SCHEME: Final = "grpcs://"
# RFC 9113, section 6.5.2, recommends that servers allow at least that number per connection; more calls would wait.
_CALLS_PER_CONNECTION: Final = 100


@dataclass(eq=False, repr=False)
class GrpcHandler(OpenHandler):
    """Sends a record as a HandleRequest and decides by the status.

    OK is done, or discarded if the response says so. ``retry_statuses`` are retried (after the delay of a
    google.rpc.RetryInfo), ``discard_statuses`` discard the record, all others dead-letter it. The call's deadline is
    the attempt's limit, and a cancelled attempt cancels the call.

    Args:
        address: ``grpc://host:port``, or ``grpcs://host:port`` for TLS.
        settings: statuses and certificates.
        timeout_s: the limit of one attempt, s.
        max_in_flight: calls at once.
        trace_headers: gives the metadata that carries the trace on, if tracing is on.

    Raises:
        ConfigurationError: no record could ever be sent to the address.
    """

    address: str
    settings: GrpcHandlerSettings
    timeout_s: float
    max_in_flight: int
    trace_headers: HttpHeadersSource | None = None

    def __post_init__(self) -> None:
        self.target = target_of(self.address)
        self._forwarded = ForwardedHeaders(self.settings.forward_headers, self.trace_headers)
        self._channels: list[aio.Channel] = []
        self._methods: cycle[Any] | None = None

    async def open(self) -> None:
        """Make the channels; they connect when they are needed.

        Raises:
            ConfigurationError: a certificate can't be read.
        """
        for _ in range(-(-self.max_in_flight // _CALLS_PER_CONNECTION)):
            self._channels.append(open_channel(self.target, self.address.startswith(TLS_SCHEME), self.settings))
        self._methods = cycle([channel.unary_unary(METHOD) for channel in self._channels])

    async def close(self) -> None:
        """Close the connections."""
        for channel in self._channels:
            await channel.close()

    async def call(self, record: Record) -> HandlerResult:
        """Send one record; what it raises is what the handler contract says about retrying.

        Raises:
            TimeoutError: the deadline has passed.
            TransientError: another status to retry, no connection among them.
            PermanentError: any other status, or a response that can't be read.
            OSError: this process has no file descriptor left.
        """
        if self._methods is None:
            raise ConfigurationError("the gRPC handler was called before it was opened")
        request = encode_request(record, CURRENT_ATTEMPT.get())
        try:
            answer = await next(self._methods)(request, timeout=self.timeout_s, metadata=self._metadata(record))
        except aio.AioRpcError as error:
            _require_descriptor(error.details())
            return self._result_of(error)
        return decode_response(answer)

    def _metadata(self, record: Record) -> list[tuple[str, str]]:
        ids = [("idempotency-key", record.idempotency_key), ("x-waitreg-wait-id", record.wait_id)]
        return ids + [(name.lower(), value) for name, value in self._forwarded.of(record)]

    def _result_of(self, error: aio.AioRpcError) -> HandlerResult:
        status = error.code().name
        seen = f"the call ended with {status}: {error.details() or 'no details'}"
        if status in self.settings.discard_statuses:
            return Discard(seen)
        if status not in self.settings.retry_statuses:
            raise PermanentError(seen) from error
        if status == GrpcStatus.DEADLINE_EXCEEDED:
            raise TimeoutError(seen) from error
        details = error.trailing_metadata().get("grpc-status-details-bin")
        raise TransientError(seen, retry_after_s=retry_delay_s(details)) from error


def _require_descriptor(details: str | None) -> None:
    """Raise the OSError that the client hides in a text, unless the text is the service's."""
    if details is not None and os.strerror(errno.EMFILE) in details:
        socket.socket().close()
