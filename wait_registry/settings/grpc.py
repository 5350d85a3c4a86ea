"""The gRPC handler: which statuses are retried, and how the connection is protected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from pydantic import Field, SecretStr

from wait_registry.diagnosis import Diagnosis, error
from wait_registry.settings import Section
from wait_registry.settings.contradictions import tls_problems

# https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md; values of names with -bin are bytes.
_METADATA_NAME: Final = re.compile(r"(?!grpc-)[0-9a-z_.-]+(?<!-bin)")


class GrpcStatus(StrEnum):
    """The statuses of a failed call (https://grpc.io/docs/guides/status-codes)."""

    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"
    DATA_LOSS = "DATA_LOSS"
    UNAUTHENTICATED = "UNAUTHENTICATED"


# Each of these may come from a proxy, a framework or the deployment, from code that hasn't looked at the record. The
# others say that the service has looked at the record and refuses it.
RETRY_STATUSES = (
    GrpcStatus.CANCELLED,  # the server stops; a call that the processor cancels has no status
    GrpcStatus.UNKNOWN,  # the service's method raised an exception
    GrpcStatus.DEADLINE_EXCEEDED,  # a timeout, here or behind the service
    GrpcStatus.PERMISSION_DENIED,  # a mesh's policy refuses this client
    GrpcStatus.RESOURCE_EXHAUSTED,  # a rate limit or a full queue
    GrpcStatus.ABORTED,  # a conflict of transactions: by definition the caller repeats the whole operation
    GrpcStatus.UNIMPLEMENTED,  # another service is at the address, or an older release of this one
    GrpcStatus.INTERNAL,  # a broken stream, or a proxy's error
    GrpcStatus.UNAVAILABLE,  # no connection, or the service is overloaded
    GrpcStatus.UNAUTHENTICATED,  # the client certificate has expired or isn't known yet
)


class GrpcHandlerSettings(Section):
    """The gRPC handler (``processor.handler = "grpc://..."``): each attempt calls waitreg_handler.v1.Handler/Handle."""

    forward_headers: tuple[str, ...] = ()
    """record headers forwarded as metadata"""
    retry_statuses: tuple[GrpcStatus, ...] = RETRY_STATUSES
    """statuses that are retried"""
    discard_statuses: tuple[GrpcStatus, ...] = ()
    """statuses that discard the record"""
    ca: str | None = Field(None, repr=False)
    """trusted certificates for grpcs, PEM text; by default the system's store"""
    certificate: str | None = Field(None, repr=False)
    """client certificate chain, PEM text, for mutual TLS"""
    key: SecretStr | None = None
    """client key, PEM text (unencrypted), for mutual TLS"""


def grpc_problems(settings: GrpcHandlerSettings, handlers: Sequence[str]) -> Iterator[Diagnosis]:
    """Yield what is wrong with ``processor.grpc``; ``handlers`` are the names of all."""
    both = sorted(set(settings.retry_statuses) & set(settings.discard_statuses))
    if both:
        yield error(
            f"gRPC statuses {', '.join(both)} are in processor.grpc.retry_statuses and in discard_statuses: remove one "
            "of them"
        )
    for name in settings.forward_headers:
        if _METADATA_NAME.fullmatch(name.lower()) is None:
            yield error(
                f"processor.grpc.forward_headers has {name!r}, which gRPC doesn't take as metadata: letters, digits "
                "and _.- are allowed, and neither grpc- in front nor -bin at the end. Remove it; each call has the "
                "record's headers anyway"
            )
    schemes = {name.partition(":")[0] for name in handlers}
    without_tls = "grpc" in schemes and "grpcs" not in schemes
    unused = "processor.handler is grpc://, which doesn't use it: make it grpcs://, or remove it" if without_tls else ""
    yield from tls_problems("processor.grpc", unused, settings.ca, settings.certificate, settings.key)
