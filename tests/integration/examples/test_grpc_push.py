"""examples/grpc_push: a service in Python with generated code, and its statuses decide."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.examples.conftest import ROOT, Example
from tests.support.handler_proto import generate_python
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from wait_registry.local.child import GuardedChild, Program

LISTENING = "listening on "


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Path]:
    """The example's service, running; the file has what it prints."""
    generate_python(tmp_path)
    printed = tmp_path / "printed"
    script = ROOT / "examples" / "grpc_push" / "receiver.py"
    # The generated code is in the current directory in the example, and on the path here.
    service = GuardedChild(
        Program([sys.executable, str(script), "0"], printed, tmp_path, {"PYTHONPATH": str(tmp_path)})
    )
    try:
        wait_until(lambda: LISTENING in printed.read_text() or service.exit_status is not None, what="the service")
        assert service.exit_status is None, printed.read_text()
        yield printed
    finally:
        service.kill()


def test_the_service_decides_by_response_and_status(example: Example, receiver: Path) -> None:
    orders = [Outgoing(b'{"order": %d}' % number, b"order %d" % number) for number in (1, 2, 10)]
    others = [Outgoing(b"not JSON", b"refused"), Outgoing(None, b"deleted"), Outgoing(b"", b"empty")]
    address = receiver.read_text().splitlines()[0].removeprefix(LISTENING)
    example.run("grpc_push", orders + others, {"WAITREG_PROCESSOR__HANDLER": f"grpc://{address}"})

    assert example.outcomes() == {
        "order 1": "done",
        "order 2": "done",
        "order 10": "done",
        "refused": "dead_lettered",
        "deleted": "discarded",
        "empty": "dead_lettered",
    }
    said = {key: letter.text("DLQ_ERROR_MESSAGE") for key, letter in example.dead_letters().items()}
    refusal = "the call ended with INVALID_ARGUMENT: the value is no order"
    assert said == {"refused": refusal, "empty": refusal}
    assert sorted(receiver.read_text().splitlines()[1:]) == [
        "charged order 1, attempt 1",
        "charged order 10, attempt 2",
        "charged order 2, attempt 1",
    ]
