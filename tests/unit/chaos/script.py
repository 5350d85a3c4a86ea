"""Writes the history of a run that never was, step by step, as a system that keeps its guarantees makes it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from unittest.mock import ANY

from tests.chaos.history.entries import Registration, Republished, Tombstone, TopicRecord, Unreadable, WaitEntry
from tests.chaos.history.history import (
    DeadLetterRow,
    FaultDone,
    History,
    Input,
    Partition,
    Poll,
    ProgressRow,
    QuarantineRow,
    Tables,
    WaitRow,
)
from tests.support.naming import Names
from tests.support.settings import settings_against
from wait_registry.demo.calls import Call
from wait_registry.demo.manifest import Coordinates, fingerprint
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome
from wait_registry.records.wait_id import wait_id as derive_wait_id
from wait_registry.settings.root import Settings

Entry = TypeVar("Entry", bound=WaitEntry)

CLUSTER, GROUP, WAIT, DLQ, INPUT = "cluster", "billing", "wait", "dlq", "orders"
AGAIN = f"{INPUT}.{GROUP}.redeliver"
START_MS = 1_795_000_000_000
TTL_MS, ATTEMPT_MS, SKEW_MS, POLLS_MS = 8_000, 1_000, 500, 1_000
WAIT_PARTITIONS, BYTES, REGISTERED_BYTES, MOST_REGISTERED_BYTES = 3, 100, 4_100, 100_000
SETTINGS = settings_against(
    "127.0.0.1:1",
    "postgresql://x",
    Names(),
    {
        "wait.topic": WAIT,
        "wait.partitions": WAIT_PARTITIONS,
        "wait.skew_allowance_s": SKEW_MS / 1000,
        "wait.max_message_bytes": MOST_REGISTERED_BYTES,
        "dead_letter.topic": DLQ,
        "processor.group": GROUP,
        "processor.topics": (INPUT,),
        "processor.ttl_s": TTL_MS / 1000,
        "processor.handler_timeout_s": ATTEMPT_MS / 1000,
        "processor.max_attempts": 2,
        "processor.max_deliveries": 3,
        "processor.max_in_flight": 6,
        "processor.prefetch_max": 12,
        "processor.http.retry_statuses": (503,),
        "processor.http.discard_statuses": (404,),
        "sweeper.chunk_rows": 2,
    },
)


def changed_settings(**fields: Any) -> Settings:
    """Return the settings with other fields of the processor's, unchecked."""
    return SETTINGS.model_copy(update={"processor": SETTINGS.processor.model_copy(update=fields)})


# Some records are redelivered, the others aren't; fewer bytes than the least that a real processor may hold.
RUN = changed_settings(expiry_policy=ANY, prefetch_max_bytes=2_000)


@dataclass
class Script:
    """The run so far; every method lets a little time pass and does one thing."""

    now_ms: int = START_MS
    inputs: list[Input] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    wait_log: list[WaitEntry] = field(default_factory=list)
    dead_letters: list[TopicRecord] = field(default_factory=list)
    redelivered: list[TopicRecord] = field(default_factory=list)
    committed: dict[Partition, int] = field(default_factory=dict)
    ends: dict[Partition, int] = field(default_factory=lambda: defaultdict(int))
    faults: list[FaultDone] = field(default_factory=list)
    snapshots: list[Tables] = field(default_factory=list)
    snapshots_at_polls: bool = False

    def wait(self, ms: int) -> None:
        """Let time pass, with polls."""
        until_ms = self.now_ms + ms
        while until_ms - self.now_ms > POLLS_MS:
            self.now_ms += POLLS_MS
            self.polls.append(self._seen())
        self.now_ms = until_ms

    def publish_record(self, partition: int = 0, size: int = BYTES, registered: int = REGISTERED_BYTES) -> Coordinates:
        self.wait(5)
        place, number = (INPUT, partition, self._append((INPUT, partition))), len(self.inputs)
        headers = [("number", b"%d" % number), ("null", None)]
        content = fingerprint(b"key-%d" % number, b"value-%d" % number, headers)
        self.inputs.append(Input(place, self.now_ms, content, "create", size, registered))
        return place

    def register_record(self, place: Coordinates, instance: str = "processor-1/1", policy: str = "dlq") -> Registration:
        """Register what was published or redelivered at a place."""
        self.wait(3)
        again = next((one for one in self.redelivered if one.place == place and isinstance(one, Republished)), None)
        original = place if again is None else again.original
        record = self._published(original)
        wait_id = derive_wait_id(CLUSTER, *place, GROUP, record.timestamp_ms if again is None else again.append_ms)
        registration = Registration(
            int(wait_id[-4:], 16) % WAIT_PARTITIONS,
            0,
            0,
            wait_id,
            True,
            original=original,
            timestamp_ms=record.timestamp_ms,
            content=record.content,
            expires_at_ms=self.now_ms + TTL_MS,
            group=GROUP,
            instance=instance,
            delivery=1 if again is None else again.delivery,
            dead_letter_topic=DLQ,
            expiry_policy=policy,
            max_deliveries=3,
            source=None if again is None else place,
        )
        return self._log(registration)

    def commit(self, place: Coordinates) -> None:
        self.wait(2)
        self.committed[place[:2]] = max(place[2] + 1, self.committed.get(place[:2], 0))

    def poll(self) -> None:
        self.wait(2)
        self.polls.append(self._seen())

    def snapshot(self) -> Tables:
        """Read the tables, of a sink that is at the log's end."""
        self.snapshots.append(self._tables())
        return self.snapshots[-1]

    def call(self, entry: Registration, status: int = 200, last_ms: int = 40) -> Call:
        self.wait(3)
        started_ms, body = self.now_ms, entry.content.value
        self.wait(last_ms)
        assert body is not None
        times = (started_ms, self.now_ms, started_ms / 1000, self.now_ms / 1000)
        call = Call(len(self.calls) + 1, *times, entry.wait_id, *entry.original, entry.delivery, status, body)
        self.calls.append(call)
        return call

    def tombstone(self, entry: WaitEntry, outcome: str = Outcome.DONE, committed: bool = True) -> Tombstone:
        self.wait(3)
        return self._log(Tombstone(entry.partition, 0, 0, entry.wait_id, committed, outcome=outcome))

    def letter(self, entry: Registration, reason: str = Reason.FAILED, committed: bool = True) -> Republished:
        """Dead-letter a registration."""
        self.wait(3)
        texts = {"error_class": "ValueError", "error_message": ""}
        lineage = (entry.wait_id, entry.place, GROUP, entry.instance, entry.delivery)
        letter = self._republish(
            (DLQ, len(self.dead_letters) % 2), entry.original, lineage, committed, reason=reason, **texts
        )
        self.dead_letters.append(letter)
        return letter

    def unregistered(self, place: Coordinates, reason: str = Reason.UNREGISTRABLE) -> None:
        """Dead-letter what can't be registered."""
        self.wait(3)
        wait_id = derive_wait_id(CLUSTER, *place, GROUP, self._published(place).timestamp_ms)
        lineage = (wait_id, None, GROUP, "processor-1/1", 1)
        self.dead_letters.append(self._republish((DLQ, 0), place, lineage, True, reason=reason))

    def expire(self, entry: Registration) -> None:
        """Let a registration's time pass."""
        self.wait(max(0, entry.expires_at_ms + 600 - self.now_ms))

    def export(self, entry: Registration, committed: bool = True) -> None:
        """Export an expired registration: dead letter and tombstone, and their transaction's markers."""
        self.expire(entry)
        letter = self.letter(entry, Reason.EXPIRED, committed)
        tombstone = self.tombstone(entry, Outcome.EXPIRED, committed)
        self._append((DLQ, letter.partition))
        self._append((WAIT, tombstone.partition))

    def redeliver_record(self, entry: Registration) -> Coordinates:
        """Redeliver an expired registration."""
        self.expire(entry)
        self.wait(3)
        lineage = (entry.wait_id, entry.place, GROUP, entry.instance, entry.delivery + 1)
        again = self._republish((AGAIN, 0), entry.original, lineage, True)
        self.redelivered.append(again)
        self.tombstone(entry, Outcome.REDELIVERED)
        self._append((AGAIN, 0))
        self._append((WAIT, entry.partition))
        return again.place

    def fault(self, name: str, target: str, for_ms: int = 500) -> None:
        began_ms = self.now_ms
        self.wait(for_ms)
        self.faults.append(FaultDone(name, target, began_ms, self.now_ms, "pid 7 gone"))

    def done(self, place: Coordinates, instance: str = "processor-1/1") -> Registration:
        """Play the usual life of a record, and return its registration."""
        entry = self.register_record(place, instance)
        self.commit(place)
        self.poll()
        self.call(entry)
        self.tombstone(entry)
        return entry

    def failed(self, place: Coordinates) -> None:
        """Play the life of a record that its handler gives up."""
        entry = self.register_record(place)
        self.commit(place)
        self.call(entry, status=400)
        self.letter(entry)
        self.poll()
        self.tombstone(entry, Outcome.DEAD_LETTERED)

    def history(self) -> History:
        """Return the run so far, with the tables that belong to it."""
        self.poll()
        return History(
            settings=RUN,
            cluster_id=CLUSTER,
            inputs=list(self.inputs),
            calls=list(self.calls),
            polls=list(self.polls),
            wait_log=list(self.wait_log),
            dead_letters=list(self.dead_letters),
            redelivered=list(self.redelivered),
            committed_at_end=dict(self.committed),
            ends={place: end for place, end in self.ends.items() if place[0] != INPUT},
            tables=self._tables(),
            faults=list(self.faults),
            snapshots=list(self.snapshots) if self.snapshots else None,
            processes=2,
        )

    def _republish(
        self, partition: Partition, original: Coordinates, lineage: Any, committed: bool, **why: Any
    ) -> Republished:
        record = self._published(original)
        where = (*partition, self._append(partition), self.now_ms, committed, record.content)
        time_ms = self.now_ms if why else None
        return Republished(*where, original, record.timestamp_ms, *lineage, **why, time_ms=time_ms)

    def _published(self, place: Coordinates) -> Input:
        return next(one for one in self.inputs if one.place == place)

    def _tables(self) -> Tables:
        last = {(entry.wait_id, entry.partition): entry for entry in self.wait_log if entry.committed}
        return Tables(
            [WaitRow(entry.wait_id, entry) for entry in last.values() if isinstance(entry, Registration)],
            [DeadLetterRow(one, self._late(one)) for one in self.dead_letters if one.committed],
            [QuarantineRow((WAIT, *one.place), one.why) for one in self.wait_log if isinstance(one, Unreadable)],
            [ProgressRow(*place, end) for place, end in self.ends.items() if place[0] in (WAIT, DLQ)],
            self.now_ms,
        )

    def _late(self, letter: TopicRecord) -> bool:
        if not isinstance(letter, Republished) or letter.reason != Reason.EXPIRED:
            return False
        letters = (one for one in self.dead_letters if isinstance(one, Republished) and one.wait_id == letter.wait_id)
        failed = any(one.reason == Reason.FAILED for one in letters)
        return failed or any(one.wait_id == letter.wait_id and one.outcome == Outcome.DONE for one in self.wait_log)

    def _seen(self) -> Poll:
        if self.snapshots_at_polls:
            self.snapshot()
        waits = {number: self.ends[WAIT, number] for number in range(WAIT_PARTITIONS)}
        letters = {place: end for place, end in self.ends.items() if place[0] in (DLQ, AGAIN)}
        return Poll(self.now_ms, self.now_ms + 2, dict(self.committed), waits, dict(waits), letters)

    def _append(self, partition: Partition) -> int:
        self.ends[partition] += 1
        return self.ends[partition] - 1

    def _log(self, entry: Entry) -> Entry:
        placed = replace(entry, offset=self._append((WAIT, entry.partition)), append_ms=self.now_ms)
        self.wait_log.append(placed)
        return placed


def play_clean_run(script: Script) -> None:
    """Play a run in which most are done, some fail, one is too large, and processes die.

    All that at-least-once allows is in it too: done and exported, `failed` and `expired`, registered again by the next
    owner, done twice, redelivered, exported by an aborted transaction and then for good, finished after its export.
    """
    for number in range(30):
        script.done(script.publish_record(number % 3), f"processor-{1 + number % 2}/1")
    for number in range(4):
        script.failed(script.publish_record(number % 3))
    large = script.publish_record(1, registered=MOST_REGISTERED_BYTES + 1)
    script.unregistered(large)
    script.commit(large)
    script.poll()
    _a_kill_among_five(script)
    _a_failed_one_expires_too(script)
    _a_redelivery(script)
    _a_zombie_wakes(script)
    for number in range(6):
        script.done(script.publish_record(number % 3))
    script.wait(500)


def _a_kill_among_five(script: Script) -> None:
    """Play a kill with five records in flight: committed, in flight, answered, uncommitted, and an aborted export."""
    places = [script.publish_record(2) for _ in range(5)]
    entries = [script.register_record(place, "processor-2/1") for place in places]
    script.commit(places[2])
    script.poll()
    script.call(entries[0])
    script.call(entries[1], status=499)
    script.fault("kill", "processor-2")
    # What was not committed comes to the other instance, under its id.
    again = [script.register_record(place) for place in places[3:]]
    script.commit(places[4])
    script.poll()
    for entry in again:
        script.call(entry)
        script.tombstone(entry)
    for entry in entries[:3]:
        script.export(entry, committed=False)
        script.export(entry)
        script.poll()


def _a_failed_one_expires_too(script: Script) -> None:
    """Play a kill between a `failed` dead letter and its tombstone."""
    place = script.publish_record(0)
    entry = script.register_record(place)
    script.commit(place)
    script.call(entry, status=400)
    script.letter(entry)
    script.fault("kill", "processor-1")
    script.export(entry)


def _a_redelivery(script: Script) -> None:
    """Play an expiry under the policy `redeliver`, whose second delivery is done."""
    place = script.publish_record(1)
    entry = script.register_record(place, "processor-3/1", "redeliver")
    script.commit(place)
    script.fault("kill", "processor-3")
    again = script.redeliver_record(entry)
    script.poll()
    script.done(again, "processor-4/1")


def _a_zombie_wakes(script: Script) -> None:
    """Play a frozen processor that finishes, and fails, what had been exported while it stalled."""
    places = [script.publish_record(0) for _ in range(2)]
    entries = [script.register_record(place, "processor-4/1") for place in places]
    script.commit(places[1])
    script.poll()
    script.fault("freeze", "processor-4", for_ms=200)
    for entry in entries:
        script.export(entry)
    script.faults[-1] = script.faults[-1]._replace(ended_ms=script.now_ms)
    script.call(entries[0])
    script.tombstone(entries[0])
    script.letter(entries[1])
    script.tombstone(entries[1], Outcome.DEAD_LETTERED)
