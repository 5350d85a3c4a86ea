"""A request that fails for a moment is sent again within the client's limit; other failures are raised at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from wait_registry.errors import ConfigurationError, TransientError, WaitRegistryError
from wait_registry.kafka import positions
from wait_registry.kafka.clients import admin
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.kafka.requests import DEFAULT_TIMEOUT_S, persistently, timeout_of
from wait_registry.settings.kafka import KafkaSettings

CLIENT = admin(KafkaSettings(bootstrap_servers="127.0.0.1:1", request_timeout_s=10))


class TurningClock:
    """A clock that advances by four seconds whenever it is read."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now_ms(self) -> int:
        return int(self.now_s * 1000)

    def monotonic(self) -> float:
        self.now_s += 4
        return self.now_s


@pytest.mark.parametrize(
    ("error", "failures", "answered"),
    [
        (TransientError("an election"), 2, True),
        # The limit is read at 4 s and ends at 14 s: failures at 8 s and 12 s are repeated, the one at 16 s isn't.
        (TransientError("still an election"), 3, False),
        (ConfigurationError("no permission"), 1, False),
    ],
)
def test_only_a_transient_failure_is_repeated(error: WaitRegistryError, failures: int, answered: bool) -> None:
    calls: list[int] = []

    def request() -> str:
        calls.append(1)
        if len(calls) <= failures:
            raise error
        return "answer"

    if answered:
        assert persistently(CLIENT, request, TurningClock()) == "answer"
    else:
        with pytest.raises(type(error), match=str(error)):
            persistently(CLIENT, request, TurningClock())
    assert len(calls) == failures + answered


def test_the_limit_is_the_setting_s_or_a_default_for_plain_clients() -> None:
    assert timeout_of(CLIENT) == 10
    assert timeout_of(AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})) == DEFAULT_TIMEOUT_S


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
