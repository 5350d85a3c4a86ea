"""What protoc generates from handler.proto, and google.rpc's status details, as services write them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, message_factory
from google.rpc import error_details_pb2, status_pb2
from grpc_tools import protoc

PROTO_ROOT = Path(__file__).parents[2] / "processor" / "handlers" / "proto"
PROTO = "waitreg_handler/v1/handler.proto"


def proto_file() -> descriptor_pb2.FileDescriptorProto:
    """Return the descriptor of handler.proto."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "handler.binpb"
        _protoc(f"--descriptor_set_out={out}")
        (file,) = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    return file


@cache
def messages() -> dict[str, type[Any]]:
    """Return the message classes by their full names."""
    return message_factory.GetMessages([proto_file()])


def generate_python(folder: Path) -> None:
    """Write the modules that a service in Python imports."""
    _protoc(f"--python_out={folder}", f"--grpc_python_out={folder}")


def _protoc(*options: str) -> None:
    status = protoc.main(["protoc", f"-I{PROTO_ROOT}", *options, PROTO])
    assert status == 0, f"protoc ended with {status}"


def request(encoded: bytes) -> Any:
    """Read a HandleRequest."""
    return messages()["waitreg_handler.v1.HandleRequest"].FromString(encoded)


def discarded(reason: str) -> bytes:
    """Write the HandleResponse of a discarded record."""
    response = messages()["waitreg_handler.v1.HandleResponse"]()
    response.discard.reason = reason
    return response.SerializeToString()


def status_with(*details: Any) -> bytes:
    """Write a google.rpc.Status with these details."""
    status = status_pb2.Status(code=8, message="slow down")
    for detail in details:
        status.details.add().Pack(detail)
    return status.SerializeToString()


def retry_info(seconds: int, nanos: int = 0) -> Any:
    """Return a google.rpc.RetryInfo."""
    info = error_details_pb2.RetryInfo()
    info.retry_delay.seconds, info.retry_delay.nanos = seconds, nanos
    return info
