"""examples/batch_enrich: records travel together, and each keeps the outcome that is its own."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.integration.examples.conftest import Example
from tests.support.http_service import Answer, Call, HttpService
from tests.support.kafka_io import Outgoing


class Enrichment:
    """Answers batches record by record; one with a `poison` order fails as a whole, one with a `hang` order hangs."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.singles: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()

    def answer(self, call: Call) -> Answer:
        """Answer a batch or a single order."""
        body = call.json()
        if call.path == "/enrich":
            self.singles[body["order"]["kind"]] += 1
            return Answer(422, {"problem": "poison"}) if body["order"]["kind"] == "poison" else Answer(200)
        kinds = [item["order"]["kind"] for item in body["orders"]]
        self.batches.append([item["id"] for item in body["orders"]])
        if "poison" in kinds:
            return Answer(500)
        return Answer(200, {"results": [self._result(item) for item in body["orders"]]}, held_back="hang" in kinds)

    def _result(self, item: dict[str, Any]) -> dict[str, Any]:
        self._asked[item["id"]] += 1
        kind = item["order"]["kind"]
        if kind == "unknown":
            return {"id": item["id"], "status": 422, "problem": "no such customer"}
        if kind == "busy" and self._asked[item["id"]] == 1:
            return {"id": item["id"], "status": 503}
        if kind == "forgotten":
            return {"id": "of no order", "status": 200}
        return {"id": item["id"], "status": 200}


def record(key: str, kind: str) -> Outgoing:
    return Outgoing(json.dumps({"kind": kind}).encode(), key.encode())


def test_records_share_calls_and_keep_their_own_outcomes(example: Example) -> None:
    enrichment = Enrichment()
    good = [record(f"good-{number}", "good") for number in range(100)]
    odd = [
        record("unknown", "unknown"),
        record("busy", "busy"),
        record("forgotten", "forgotten"),
        Outgoing(None, b"deleted"),
        Outgoing(b"{", b"garbled"),
    ]
    with HttpService(enrichment.answer) as service:
        example.run("batch_enrich", [*good, *odd], {"ENRICH_URL": f"{service.address}/enrich"})
    outcomes = example.outcomes()
    assert Counter(outcomes[f"good-{number}"] for number in range(100)) == {"done": 100}
    assert {key: outcomes[key] for key in ("unknown", "busy", "forgotten", "deleted", "garbled")} == {
        "unknown": "dead_lettered",
        "busy": "done",
        "forgotten": "done",
        "deleted": "discarded",
        "garbled": "dead_lettered",
    }
    assert max(len(batch) for batch in enrichment.batches) <= 20
    assert len(enrichment.batches) < 50, "more than two records a call on average"
    assert enrichment.singles == {"forgotten": 1}, "only what the batch skipped is asked about alone"
    ids = example.wait_ids()
    asked = Counter(wait_id for batch in enrichment.batches for wait_id in batch)
    assert asked[ids["busy"]] == 2, "tried again in a later batch"
    assert asked[ids["good-0"]] == asked[ids["unknown"]] == 1
    letters = example.dead_letters()
    assert sorted(letters) == ["garbled", "unknown"]
    assert "no such customer" in letters["unknown"].text("DLQ_ERROR_MESSAGE")


@pytest.mark.parametrize(("odd", "its_outcome"), [("poison", "dead_lettered"), ("hang", "done")])
def test_a_batch_that_fails_or_hangs_falls_back_to_single_calls(example: Example, odd: str, its_outcome: str) -> None:
    enrichment = Enrichment()
    records = [*(record(f"good-{number}", "good") for number in range(5)), record(odd, odd)]
    # Long enough for all six to meet in one batch.
    settings = {"ENRICH_BATCH_WAIT_MS": "1000", "ENRICH_BATCH_TIMEOUT_S": "1"}
    with HttpService(enrichment.answer) as service:
        example.run("batch_enrich", records, {"ENRICH_URL": f"{service.address}/enrich", **settings})
    assert example.outcomes() == {f"good-{number}": "done" for number in range(5)} | {odd: its_outcome}
    ids = example.wait_ids()
    (bad_batch,) = [batch for batch in enrichment.batches if ids[odd] in batch]
    assert len(bad_batch) > 1, "it took others with it"
    asked_alone = [call.idempotency_key for call in service.calls if call.path == "/enrich"]
    assert sorted(asked_alone) == sorted(bad_batch), "each of them once, its wait id being the idempotency key"
    assert sorted(example.dead_letters()) == (["poison"] if odd == "poison" else [])
