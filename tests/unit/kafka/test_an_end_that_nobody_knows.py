"""A broker that has just come back may answer without an offset: that is asked again, and never taken for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from wait_registry.errors import TransientError
from wait_registry.kafka import positions
from wait_registry.kafka.positions import earliest_offsets, end_offsets


class Answering(AdminClient):  # type: ignore[misc]
    """A client whose answers about offsets are given."""

    def __init__(self, *offsets: int) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
        self._offsets: Iterator[int] = iter(offsets)

    def list_offsets(
        self, wanted: Mapping[TopicPartition, OffsetSpec], **_: Any
    ) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
        answers: dict[TopicPartition, Future[ListOffsetsResultInfo]] = {}
        for asked in wanted:
            answers[asked] = Future()
            answers[asked].set_result(ListOffsetsResultInfo(next(self._offsets), -1, -1))
        return answers


@pytest.mark.parametrize("unknown", [OFFSET_INVALID, -1])
def test_an_answer_without_an_offset_is_asked_for_again(unknown: int) -> None:
    assert end_offsets(Answering(unknown, 29), "wait", [0]) == {0: 29}
    assert earliest_offsets(Answering(unknown, 0), "wait", [0]) == {0: 0}


def test_an_offset_that_stays_unknown_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "persistently", lambda _, ask: ask())
    with pytest.raises(TransientError, match=r"wait-0.*-1001"):
        end_offsets(Answering(OFFSET_INVALID), "wait", [0])
