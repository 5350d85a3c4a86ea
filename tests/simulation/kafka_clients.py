"""The producer and the consumer of sweeper and redrive in the small worlds: each request is an effect."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from confluent_kafka import KafkaError

from tests.simulation.replay import ask
from tests.simulation.wait_log import NAME, WAIT, WAIT_IDS
from wait_registry.records.topics import redelivery_topic
from wait_registry.settings.tree import Settings

GROUP: Final = "group"
TARGET: Final = redelivery_topic("orders", GROUP)
_OPERATIONS: Final = Settings().operations.topic
# Where a record is doesn't matter, so all are at offset 0.
_PLACE: Final = SimpleNamespace(topic=lambda: TARGET, partition=lambda: 0, offset=lambda: 0, timestamp=lambda: (2, 0))


class Producer:
    """A transactional producer: what it is handed is sent with the next flush or the request to commit."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._id = config["transactional.id"]
        self._queue: list[tuple[tuple[str, Any, int], Callable[..., None]]] = []

    def init_transactions(self, _: float) -> None:
        ask("fence", self._id)

    def begin_transaction(self) -> None:
        self._queue = []

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: list[tuple[str, bytes]],
        on_delivery: Callable[..., None],
        partition: int = -1,
    ) -> None:
        if topic == NAME.topic:
            assert key is not None
            sent: tuple[str, Any, int] = ("tombstone", WAIT_IDS.index(key.decode()), partition)
        elif topic == _OPERATIONS:
            sent = ("event", value, partition)
        elif topic == TARGET:
            sent = ("record", WAIT_IDS.index(dict(headers)["WAIT_EXPIRATION_UUID"].decode()), partition)
        else:
            sent = ("letter", int(dict(headers)["WAIT_OFFSET"]), partition)
        self._queue.append((sent, on_delivery))

    def flush(self, limit_s: float) -> int:
        queue, self._queue = self._queue, []
        if queue:
            ask("write", self._id, tuple(sent for sent, _ in queue))
        for _, heard in queue:
            heard(None, _PLACE)
        return 0

    def commit_transaction(self, limit_s: float) -> None:
        self.flush(limit_s)
        ask("commit", self._id)
        ask("answer", self._id)

    def abort_transaction(self, _: float) -> None: ...

    def purge(self) -> None: ...


class Consumer:
    """A consumer of one partition: a poll brings all that it may see up to the last stable offset."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._committed_only = config["isolation.level"] == "read_committed"
        self._position = 0
        self._fetched: deque[SimpleNamespace] = deque()

    def assign(self, places: list[Any]) -> None:
        self._position = places[0].offset

    def poll(self, _: float) -> SimpleNamespace:
        found, self._position = ask("poll", self._position, self._committed_only)
        self._fetched.extend(_message(offset, *content) for offset, *content in found)
        self._fetched.append(_message(self._position, error=KafkaError(KafkaError._PARTITION_EOF)))
        return self._fetched.popleft()

    def consume(self, *_: float) -> list[SimpleNamespace]:
        messages, self._fetched = list(self._fetched), deque()
        return messages

    def close(self) -> None: ...


def _message(offset: int, *content: Any, error: KafkaError | None = None) -> SimpleNamespace:
    """Return a message; its content is an event, or an entry of the wait log."""
    key, value = None, content[0] if content else None
    if len(content) > 1:
        kind, wait_id, _ = content
        key, value = WAIT_IDS[wait_id].encode(), b"" if kind == WAIT else None
    read = {"offset": offset, "key": key, "value": value, "error": error, "timestamp": (1, 0)}
    return SimpleNamespace(**{name: lambda what=what: what for name, what in read.items()})
