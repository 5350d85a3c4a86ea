"""examples/http_push: no code, every value POSTed, and the status decides."""

from __future__ import annotations

from tests.integration.examples.conftest import Example
from tests.support.http_service import Answer, Call, HttpService
from tests.support.kafka_io import Outgoing

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


def test_a_header_is_filled_into_the_url(example: Example) -> None:
    records = [Outgoing(b"a", b"blue", [("tenant", b"blue/../green")]), Outgoing(b"b", b"none", [("other", b"blue")])]
    with HttpService(answer) as service:
        handler = f"{service.address}/tenants/{{header:tenant}}/events"
        example.run("http_push", records, {"WAITREG_PROCESSOR__HANDLER": handler})
    assert example.outcomes() == {"blue": "done", "none": "dead_lettered"}
    assert [call.path for call in service.calls] == ["/tenants/blue%2F..%2Fgreen/events"]
    [letter] = example.dead_letters().values()
    assert letter.text("DLQ_REASON") == "malformed"
    assert "takes the header 'tenant'" in letter.text("DLQ_ERROR_MESSAGE")
