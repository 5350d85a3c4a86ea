"""examples/payment_call: no payment is charged twice, and each record ends as the example's README says."""

from __future__ import annotations

import json

from tests.integration.examples.conftest import Example
from tests.support.http_service import Answer, Call, HttpService
from tests.support.kafka_io import Outgoing


class Payments:
    """The payment service: charges a payment once and answers 409 from then on."""

    def __init__(self) -> None:
        self.charged: list[str] = []

    def answer(self, call: Call) -> Answer:
        """Do what the payment's name asks for."""
        payment = call.json()["payment"]
        if payment == "unchargeable":
            return Answer(422, {"problem": "card expired"})
        if payment == "down" or (payment == "flaky" and call.delivery == 1):
            return Answer(503)
        if payment in self.charged:
            return Answer(409)
        self.charged.append(payment)
        # The first charge is made, but its answer comes after the handler's limit.
        return Answer(201, held_back=payment == "slow")


def record(key: str, payment: str, **more: object) -> Outgoing:
    return Outgoing(json.dumps({"payment": payment, "cents": 1299, **more}).encode(), key.encode())


def test_good_failing_slow_and_repeated_payments_end_as_the_readme_says(example: Example) -> None:
    payments = Payments()
    records = [
        record("good", "good", id="pay-1"),
        record("good-again", "good", id="pay-1"),
        record("flaky", "flaky"),
        record("slow", "slow"),
        record("down", "down"),
        record("unchargeable", "unchargeable"),
        record("cancelled", "cancelled", status="cancelled"),
        Outgoing(None, b"deleted"),
        Outgoing(b"\xff not JSON", b"garbled"),
    ]
    with HttpService(payments.answer) as service:
        example.run("payment_call", records, {"PAYMENTS_URL": f"{service.address}/charges"})

    assert example.outcomes() == {
        "good": "done",
        "good-again": "done",
        "flaky": "done",
        "slow": "done",
        "down": "retried",
        "unchargeable": "dead_lettered",
        "cancelled": "discarded",
        "deleted": "discarded",
        "garbled": "dead_lettered",
    }
    assert sorted(payments.charged) == ["flaky", "good", "slow"], "each is charged once, however often it was asked for"

    ids = example.wait_ids()
    keys = [call.idempotency_key for call in service.calls]
    assert keys.count("pay-1") == 2, "a payment that has an id of its own is asked for by it, whichever record it is in"
    calls = {name: keys.count(wait_id) for name, wait_id in ids.items()}
    assert calls == {
        "good": 0,
        "good-again": 0,
        "flaky": 2,
        "slow": 2,
        "down": 3,
        "unchargeable": 1,
        "cancelled": 0,
        "deleted": 0,
        "garbled": 0,
    }
    assert set(keys) <= {"pay-1", *ids.values()}, "every other call carries its record's wait id"

    letters = example.dead_letters()
    assert {key: letter.text("DLQ_REASON") for key, letter in letters.items()} == {
        "unchargeable": "failed",
        "garbled": "failed",
    }
    assert letters["unchargeable"].text("DLQ_ERROR_CLASS") == "wait_registry.errors.PermanentError"
    assert "card expired" in letters["unchargeable"].text("DLQ_ERROR_MESSAGE")
    assert letters["garbled"].value == b"\xff not JSON"
    assert {key: letter.text("WAIT_EXPIRATION_UUID") for key, letter in letters.items()} == {
        key: ids[key] for key in letters
    }


def test_a_payment_that_failed_is_charged_later_with_the_same_key(example: Example) -> None:
    answers = iter([503] * 3)
    with HttpService(lambda call: Answer(next(answers, 201))) as service:
        soon = {"WAITREG_PROCESSOR__RETRY__DELAYS": '["1s"]'}
        example.run("payment_call", [record("down", "down")], {"PAYMENTS_URL": f"{service.address}/charges", **soon})
        assert example.outcomes() == {"down": "retried"}
        (key,) = example.wait_ids().values()
        example.process("payment_call")
    assert [call.idempotency_key for call in service.calls] == [key] * 4
    tombstones = [entry for entry in example.topics.read(example.settings.wait.topic) if entry.value is None]
    assert sorted(entry.text("WAIT_OUTCOME") for entry in tombstones) == ["done", "retried"]
    assert example.dead_letters() == {}
