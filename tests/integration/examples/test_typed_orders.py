"""examples/typed_orders: an order is decoded before the call, and what is none is malformed."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.integration.examples.conftest import ROOT, Example
from tests.support.http_service import Answer, Call, HttpService
from tests.support.kafka_io import Outgoing

STATUSES = {"good": 201, "refused": 422, "down": 503}


def answer(call: Call) -> Answer:
    """Answer what the order's ID asks for."""
    return Answer(STATUSES[call.json()["order"]])


def record(key: str, **changes: object) -> Outgoing:
    items = [{"article": "tea", "quantity": 2, "price": "4.50"}]
    return Outgoing(json.dumps({"id": key, "status": "placed", "items": items, **changes}).encode(), key.encode())


def test_orders_end_as_the_readme_says(example: Example) -> None:
    records = [
        *(record(name) for name in STATUSES),
        record("cancelled", status="cancelled"),
        record("empty", items=[]),
        Outgoing(None, b"deleted"),
        Outgoing(b"\xff not JSON", b"garbled"),
    ]
    with HttpService(answer) as service:
        example.run("typed_orders", records, {"STOCK_URL": f"{service.address}/reservations"})

    assert example.outcomes() == {
        "good": "done",
        "refused": "dead_lettered",
        "down": "dead_lettered",
        "cancelled": "discarded",
        "empty": "dead_lettered",
        "deleted": "discarded",
        "garbled": "dead_lettered",
    }
    assert {key: letter.text("DLQ_REASON") for key, letter in example.dead_letters().items()} == {
        "refused": "failed",
        "down": "failed",
        "empty": "malformed",
        "garbled": "malformed",
    }
    calls = [call.json() for call in service.calls]
    assert {"order": "good", "wanted": {"tea": 2}} in calls
    assert sorted(call["order"] for call in calls) == ["down", "down", "down", "good", "refused"]


def test_its_own_tests_pass() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "test_orders.py"],
        cwd=ROOT / "examples" / "typed_orders",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout
