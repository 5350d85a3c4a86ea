"""The examples that push: the status decides, over HTTP and over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.examples.conftest import ROOT, Example
from tests.support.handler_proto import generate_python
from tests.support.http_service import Answer, Call, HttpService
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from tests.support.wheel import build_wheel, install_wheel
from waitreg.local.child import GuardedChild, Program

STATUSES = {b"good": 204, b"known": 409, b"gone": 410, b"refused": 422, b"moved": 302, b"down": 503}


def answer(call: Call) -> Answer:
    """Answer what the body asks for."""
    if call.body == b"slow" and call.delivery == 1:
        return Answer(200, held_back=True)
    if call.body == b"flaky":
        return Answer(503 if call.delivery == 1 else 200)
    return Answer(STATUSES.get(call.body, 200))


def test_the_status_decides_and_the_wait_id_is_the_idempotency_key(example: Example) -> None:
    headers = [("tenant", b"blue"), ("secret", b"stays here"), ("traceparent", b"00-1-2-03"), ("tenant", b"\xff\x00")]
    values = [b"good", b"known", b"gone", b"refused", b"moved", b"down", b"flaky", b"slow", b""]
    records = [Outgoing(value, value or b"empty", headers) for value in values] + [Outgoing(None, b"null")]
    with HttpService(answer) as service:
        example.run("http_push", records, {"WAITREG_PROCESSOR__HANDLER": f"{service.address}/events"})

    assert example.outcomes() == {
        "good": "done",
        "known": "discarded",
        "gone": "discarded",
        "refused": "dead_lettered",
        "moved": "dead_lettered",
        "down": "dead_lettered",
        "flaky": "done",
        "slow": "done",
        "empty": "done",
        "null": "done",
    }
    assert {key: letter.text("DLQ_REASON") for key, letter in example.dead_letters().items()} == {
        "refused": "failed",
        "moved": "failed",
        "down": "failed",
    }
    ids = example.wait_ids()
    keys = [call.idempotency_key for call in service.calls]
    assert {name: keys.count(wait_id) for name, wait_id in ids.items()} == {
        **dict.fromkeys(["good", "known", "gone", "refused", "moved", "empty", "null"], 1),
        "flaky": 2,
        "slow": 2,
        "down": 3,
    }
    sent = next(call for call in service.calls if call.body == b"good").headers
    assert sent["Content-Type"] == "application/json"
    assert sent["tenant"] == "blue", "a value that is no plain text stays here"
    assert sent["traceparent"] == "00-1-2-03"
    assert "secret" not in sent
    assert sent["X-Waitreg-Delivery"] == "1"


LISTENING = "listening on "


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The Python of an environment with the wheel, as the example's reader has it."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return str(install_wheel(build_wheel(tmp_path), tmp_path / "environment"))


@pytest.fixture
def receiver(tmp_path: Path, python: str) -> Iterator[Path]:
    """The example's service, running; the file has what it prints."""
    generate_python(tmp_path)
    printed = tmp_path / "printed"
    script = ROOT / "examples" / "grpc_push" / "receiver.py"
    # The generated code is in the current directory in the example, and on the path here.
    service = GuardedChild(Program([python, str(script), "0"], printed, tmp_path, {"PYTHONPATH": str(tmp_path)}))
    try:
        wait_until(lambda: LISTENING in printed.read_text() or service.exit_status is not None, what="the service")
        assert service.exit_status is None, printed.read_text()
        yield printed
    finally:
        service.kill()


def test_the_service_decides_by_response_and_status(example: Example, receiver: Path, python: str) -> None:
    example.python = python
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
