"""The ends of topics are read when nothing is open in them, and what a record counts for by all that it has."""

from __future__ import annotations

import pytest

from tests.chaos.history import topics
from tests.chaos.history.record import RawRecord, input_bytes
from tests.chaos.history.topics import OpenTransactionError, wait_settled


class Client:
    """A consumer that is closed."""

    def close(self) -> None:
        """Do nothing."""


def test_a_transaction_that_stays_open_is_no_assertion(monkeypatch: pytest.MonkeyPatch) -> None:
    stable, whole = Client(), Client()
    monkeypatch.setattr(
        topics, "reader", lambda bootstrap, isolation: stable if isolation == "read_committed" else whole
    )
    monkeypatch.setattr(topics, "partitions_of", lambda client, topic: [0])
    monkeypatch.setattr(topics, "end_of", lambda client, place: 7 if client is whole else 6)
    with pytest.raises(OpenTransactionError, match="open"):
        wait_settled("nowhere", ["wait"], deadline_s=0)
    monkeypatch.setattr(topics, "end_of", lambda client, place: 7)
    assert wait_settled("nowhere", ["wait"], deadline_s=0) == {("wait", 0): 7}


def test_keys_values_and_headers_count_in_a_processors_hands() -> None:
    headers = (("name", b"12345"), ("null", None))
    assert input_bytes(RawRecord("orders", 0, 0, 1, b"key", b"value", headers)) == 3 + 5 + 4 + 5 + 4
    assert input_bytes(RawRecord("orders", 0, 0, 1, None, None, None)) == 0
