"""What a simulated run shows from outside, as the checker of the runs on real parts wants it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.checker.early_tombstone import early_tombstone
from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.loss import lost, unfinished
from tests.chaos.checker.ordering import out_of_order
from tests.chaos.checker.registering import committed_past, early_call, early_retry, handled_again, late_call, misnamed
from tests.chaos.history.entries import Registration, Republished, Tombstone
from tests.chaos.history.history import History, Input, Poll
from tests.simulation.messages import key_of
from tests.simulation.process import START_NEEDS_S, TTL_S
from tests.simulation.world import RETRIES, Committed, Nature, RecordId, WaitEntry, World
from wait_registry.records.dead_letter import Reason
from wait_registry.records.topics import TopicPartition
from wait_registry.records.wait_id import wait_id
from wait_registry.settings.processor import Ordering, Oversized, ProcessorSettings
from wait_registry.settings.tree import Settings
from waitreg.downstream.calls import ABORTED, Call
from waitreg.load.manifest import fingerprint

CLUSTER: Final = "c"
GROUP: Final = "g"
# What each asks for is a part of this guarantee, and nothing that this world lacks: tables, a sweeper, faults.
RULES: Final = {
    lost: "P1",
    committed_past: "P2",
    misnamed: "P1",
    early_tombstone: "P1",
    early_call: "P1",
    early_retry: "D1",
    out_of_order: "O1",
    handled_again: "P1",
}
# A fault may explain these.
CALM_RULES: Final = {**RULES, unfinished: "P1", late_call: "P3"}
# An offset that an operator has moved says nothing of the records before it.
OF_COMMITS: Final = (lost, committed_past, out_of_order, unfinished)
# One attempt takes as long as must be left of the time to live when a call starts.
SETTINGS: Final = Settings(
    processor=ProcessorSettings(
        group=GROUP, topics=("t",), ttl_s=TTL_S, handler_timeout_s=START_NEEDS_S, max_attempts=1, handler="m:f"
    )
)
_CONTENT: Final = fingerprint(b"", b"", ())
_LETTERS: Final = ("dlq", 0)
_REASONS: Final = {Nature.TOO_LARGE: Reason.UNREGISTRABLE, Nature.MALFORMED: Reason.MALFORMED}
_DONE, _FAILED = 200, 400


@dataclass
class SeenWorld(World):
    """A world that keeps what can be seen of it.

    Args:
        now_ms: reads the clock.
    """

    now_ms: Callable[[], int] = lambda: 0
    _entries: list[Registration | Tombstone] = field(default_factory=list)
    _letters: list[Republished] = field(default_factory=list)
    _retries: list[Republished] = field(default_factory=list)
    _polls: list[Poll] = field(default_factory=list)
    _calls: list[Call] = field(default_factory=list)
    _began: dict[tuple[int, RecordId], list[int]] = field(default_factory=lambda: defaultdict(list))

    def append(self, entry: WaitEntry) -> None:
        super().append(entry)
        place = (0, len(self._entries), self.now_ms(), entry.wait_id, True)
        if entry.outcome is not None:
            self._entries.append(Tombstone(*place, outcome=entry.outcome))
            return
        first, timestamp_ms, _, key = self._origin(entry.record)
        self._entries.append(
            Registration(
                *place,
                original=first,
                timestamp_ms=timestamp_ms,
                content=_CONTENT,
                expires_at_ms=entry.expires_ms,
                group=GROUP,
                instance=f"processor-{entry.process}/1",
                delivery=1,
                dead_letter_topic=_LETTERS[0],
                expiry_policy="dead_letter",
                max_deliveries=1,
                idempotency_key=key,
                source=None if first == entry.record else entry.record,
            )
        )

    def dead_letter(self, record: RecordId) -> None:
        super().dead_letter(record)
        reason, number = _REASONS.get(self.nature(record), Reason.FAILED), len(self._letters)
        place = (*_LETTERS, number, self.now_ms(), True, _CONTENT)
        *_, key = origin = self._origin(record)
        self._letters.append(Republished(*place, *origin[:3], None, GROUP, "", 1, key, reason=reason))

    def retry(self, record: RecordId, now_ms: int) -> RecordId:
        topic, partition, offset = retry = super().retry(record, now_ms)
        place = (topic, partition, offset, now_ms, True, _CONTENT)
        *_, key = origin = self._origin(record)
        self._retries.append(Republished(*place, *origin[:3], None, GROUP, "", 2, key))
        return retry

    def _origin(self, record: RecordId) -> tuple[RecordId, int, str, str]:
        """Return the record of the first delivery, its timestamp, and the wait IDs of this delivery and of that."""
        first, timestamp_ms = self.retried.get(record, (record, 0))
        return first, 0, wait_id(CLUSTER, record, GROUP, timestamp_ms), wait_id(CLUSTER, first, GROUP, 0)

    def begin_call(self, process: int, record: RecordId, now_ms: int) -> None:
        super().begin_call(process, record, now_ms)
        self._began[process, record].append(self.now_ms())

    def end_call(self, process: int, record: RecordId, done: bool) -> None:
        super().end_call(process, record, done)
        self._end((process, record), _DONE if done else _FAILED)

    def _end(self, call: tuple[int, RecordId], status: int) -> None:
        began_ms, ended_ms, record = self._began[call].pop(0), self.now_ms(), call[1]
        times = (began_ms, ended_ms, began_ms / 1000, ended_ms / 1000)
        first, _, own, key = self._origin(record)
        self._calls.append(Call(len(self._calls) + 1, *times, own, *first, 1, status, "", key))

    def commit(self, generation: int, place: TopicPartition, committed: Committed) -> bool:
        if not super().commit(generation, place, committed):
            return False
        now_ms, waits = self.now_ms(), {0: len(self._entries)}
        self._polls.append(Poll(now_ms, now_ms, self._offsets(), waits, waits, self._letter_ends()))
        return True

    def _letter_ends(self) -> dict[TopicPartition, int]:
        return {_LETTERS: len(self._letters), RETRIES: len(self._retries)}

    def _offsets(self) -> dict[TopicPartition, int]:
        return {place: committed.offset for place, committed in self.committed.items()}

    def findings(self, modes: Sequence[str], ordering: Ordering, hold: bool, calm: bool) -> list[str]:
        """Return what the checker finds in all that was seen, each after its guarantee and its rule.

        Args:
            modes: when the processes register.
            ordering: which records they handle in order.
            hold: whether they call what is too large to register.
            calm: whether nothing went wrong.
        """
        for call in [call for call, began in self._began.items() for _ in began]:
            self._end(call, ABORTED)
        records = [record for record in self.records() if record not in self.retried]
        inputs = [Input(record, 0, fingerprint(key_of(record), b"", ()), "create", 10) for record in records]
        ends = {(SETTINGS.wait.topic, 0): len(self._entries), **self._letter_ends()}
        seen = (self._calls, self._polls, self._entries, self._letters, self._retries)
        # While processes of other modes are replaced, records of theirs may be overtaken.
        own = {
            "ordering": ordering if set(modes) == {"off"} else Ordering.UNORDERED,
            "oversized": Oversized.HOLD if hold else Oversized.DEAD_LETTER,
        }
        settings = SETTINGS.model_copy(update={"processor": SETTINGS.processor.model_copy(update=own)})
        ledger = Ledger(History(settings, CLUSTER, inputs, *seen, self._offsets(), ends, None, modes=modes))
        rules = CALM_RULES if calm else RULES
        if self.ever_skipped:
            rules = {rule: of for rule, of in rules.items() if rule not in OF_COMMITS}
        return [f"{of}: {rule.__name__}: {about} {why}" for rule, of in rules.items() for about, why in rule(ledger)]
