"""Writes the history of a run that never was, step by step, as a system that keeps its promises would have made it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from tests.chaos.history.entries import (
    DEAD_LETTERED,
    DONE,
    EXPIRED,
    FAILED,
    REDELIVERED,
    UNREGISTRABLE,
    Lineage,
    Registration,
    Republished,
    WaitEntry,
)
from tests.chaos.history.history import (
    DeadLetterRow,
    FaultDone,
    History,
    Limits,
    Look,
    Partition,
    ProgressRow,
    QuarantineRow,
    Tables,
    Told,
    View,
    WaitRow,
)
from wait_registry.demo.calls import Call
from wait_registry.demo.manifest import Coordinates, Fingerprint, Published, fingerprint
from wait_registry.records.wait_id import wait_id as derived

CLUSTER, GROUP, WAIT, DLQ, INPUT = "cluster", "billing", "wait", "dlq", "orders"
AGAIN = f"{INPUT}.{GROUP}.redeliver"
START_MS = 1_795_000_000_000
TTL_MS = 8_000
WAIT_PARTITIONS = 3
LIMITS = Limits(
    max_in_flight=6,
    prefetch=12,
    processes=2,
    rss_bytes={"processor": 500_000_000},
    prefetch_bytes=2_000,
    chunk_rows=2,
)
# Some of its records are delivered again, the others aren't.
TOLD = Told(
    ttl_ms=TTL_MS,
    skew_ms=500,
    attempt_ms=1_000,
    tries=2,
    retry_statuses=(503,),
    discard_statuses=(404,),
    registration_bytes=100_000,
    dead_letter_topic=DLQ,
    expiry_policy="",
    max_deliveries=3,
)
LOOKS_MS = 1_000
SMALL_BYTES = 4_100
IN_HAND_BYTES = 100


def content(number: int) -> Fingerprint:
    """Return the content of a record, no two alike."""
    return fingerprint(b"key-%d" % number, b"value-%d" % number, [("number", b"%d" % number), ("null", None)])


@dataclass
class Script:
    """The run so far; every method takes the time on by a little and does one thing."""

    now_ms: int = START_MS
    published: list[Published] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    wait_log: list[WaitEntry] = field(default_factory=list)
    dead_letters: list[Republished] = field(default_factory=list)
    redelivered: list[Republished] = field(default_factory=list)
    committed: dict[Partition, int] = field(default_factory=dict)
    ends: dict[Partition, int] = field(default_factory=lambda: defaultdict(int))
    faults: list[FaultDone] = field(default_factory=list)
    large: set[Coordinates] = field(default_factory=set)
    input_bytes: dict[Coordinates, int] = field(default_factory=dict)
    views: list[View] = field(default_factory=list)
    views_at_looks: bool = False

    def wait(self, ms: int) -> None:
        """Let time go by; somebody looks all the time."""
        until_ms = self.now_ms + ms
        while until_ms - self.now_ms > LOOKS_MS:
            self.now_ms += LOOKS_MS
            self.looks.append(self._seen())
        self.now_ms = until_ms

    def publish(self, partition: int = 0) -> Coordinates:
        """Publish a record."""
        self.wait(5)
        offset = self._append((INPUT, partition))
        record = Published(INPUT, partition, offset, self.now_ms, content(len(self.published)))
        self.published.append(record)
        return record.coordinates

    def register(self, place: Coordinates, instance: str = "processor-1/1", policy: str = "dlq") -> WaitEntry:
        """Register what was published or redelivered there."""
        self.wait(3)
        original, timestamp_ms, attempt = self._consumed(place)
        wait_id = derived(CLUSTER, *place, GROUP, timestamp_ms)
        record = next(one for one in self.published if one.coordinates == original)
        said = Registration(
            original=original,
            timestamp_ms=record.timestamp_ms,
            content=record.fingerprint,
            wait_id=wait_id,
            expires_at_ms=self.now_ms + TTL_MS,
            group=GROUP,
            instance=instance,
            delivery=attempt,
            dead_letter_topic=DLQ,
            expiry_policy=policy,
            max_deliveries=3,
            source=None if place == original else place,
        )
        partition = int(wait_id[-4:], 16) % WAIT_PARTITIONS
        return self._entry(WaitEntry(partition, 0, 0, wait_id, True, registration=said, group=GROUP))

    def commit(self, place: Coordinates) -> None:
        """Commit behind a record."""
        self.wait(2)
        self.committed[place[:2]] = max(place[2] + 1, self.committed.get(place[:2], 0))

    def look(self) -> Look:
        """Look at the cluster."""
        self.wait(2)
        look = self._seen()
        self.looks.append(look)
        return look

    def view(self) -> View:
        """Look at the tables, of a sink that has come to the log's end."""
        view = View(self.now_ms, self.now_ms + 2, self._tables())
        self.views.append(view)
        return view

    def call(self, entry: WaitEntry, status: int = 200, last_ms: int = 40) -> Call:
        """Call the downstream for a registration."""
        self.wait(3)
        said = entry.registration
        assert said is not None
        topic, partition, offset = said.original
        started_ms = self.now_ms
        self.wait(last_ms)
        body = said.content.value
        assert body is not None
        call = Call(
            number=len(self.calls) + 1,
            started_ms=started_ms,
            finished_ms=self.now_ms,
            started_s=started_ms / 1000,
            finished_s=self.now_ms / 1000,
            wait_id=entry.wait_id,
            topic=topic,
            partition=partition,
            offset=offset,
            delivery=said.delivery,
            status=status,
            body_sha256=body,
        )
        self.calls.append(call)
        return call

    def tombstone(self, entry: WaitEntry, outcome: str = DONE, committed: bool = True) -> WaitEntry:
        """Resolve a registration."""
        self.wait(3)
        return self._entry(WaitEntry(entry.partition, 0, 0, entry.wait_id, committed, outcome=outcome))

    def letter(self, entry: WaitEntry, reason: str = FAILED, committed: bool = True) -> Republished:
        """Dead-letter a registration."""
        self.wait(3)
        said = entry.registration
        assert said is not None
        lineage = Lineage(
            said.original, said.timestamp_ms, entry.wait_id, entry.place, GROUP, said.instance, said.delivery
        )
        partition = len(self.dead_letters) % 2
        offset = self._append((DLQ, partition))
        letter = Republished(
            DLQ,
            partition,
            offset,
            self.now_ms,
            committed,
            said.content,
            lineage,
            reason,
            self.now_ms,
            error_class="ValueError",
            error_message="",
        )
        self.dead_letters.append(letter)
        return letter

    def unregistered(self, place: Coordinates, reason: str) -> Republished:
        """Dead-letter what can't be registered."""
        self.wait(3)
        record = next(one for one in self.published if one.coordinates == place)
        wait_id = derived(CLUSTER, *place, GROUP, record.timestamp_ms)
        lineage = Lineage(place, record.timestamp_ms, wait_id, None, GROUP, "processor-1/1", 1)
        offset = self._append((DLQ, 0))
        letter = Republished(DLQ, 0, offset, self.now_ms, True, record.fingerprint, lineage, reason, self.now_ms)
        self.dead_letters.append(letter)
        return letter

    def expire(self, entry: WaitEntry) -> None:
        """Let a registration's time pass."""
        assert entry.registration is not None
        self.wait(max(0, entry.registration.expires_at_ms + 600 - self.now_ms))

    def export(self, entry: WaitEntry, committed: bool = True) -> tuple[Republished, WaitEntry]:
        """Export an expired registration: dead letter and tombstone, and their transaction's markers."""
        self.expire(entry)
        letter = self.letter(entry, EXPIRED, committed)
        tombstone = self.tombstone(entry, EXPIRED, committed)
        self._append((DLQ, letter.partition))
        self._append((WAIT, tombstone.partition))
        return letter, tombstone

    def redeliver(self, entry: WaitEntry) -> Republished:
        """Redeliver an expired registration."""
        self.expire(entry)
        self.wait(3)
        said = entry.registration
        assert said is not None
        lineage = Lineage(
            said.original, said.timestamp_ms, entry.wait_id, entry.place, GROUP, said.instance, said.delivery + 1
        )
        offset = self._append((AGAIN, 0))
        again = Republished(AGAIN, 0, offset, self.now_ms, True, said.content, lineage)
        self.redelivered.append(again)
        self.tombstone(entry, REDELIVERED)
        self._append((AGAIN, 0))
        self._append((WAIT, entry.partition))
        return again

    def fault(self, name: str, target: str, for_ms: int = 500, happened: str = "pid 7 gone") -> FaultDone:
        """Do something bad, for a while."""
        began_ms = self.now_ms
        self.wait(for_ms)
        fault = FaultDone(name, target, began_ms, self.now_ms, happened)
        self.faults.append(fault)
        return fault

    def done(self, place: Coordinates, instance: str = "processor-1/1") -> WaitEntry:
        """Play the usual life of a record, and return its registration."""
        entry = self.register(place, instance)
        self.commit(place)
        self.look()
        self.call(entry)
        self.tombstone(entry)
        return entry

    def failed(self, place: Coordinates) -> WaitEntry:
        """Play the life of a record that its handler gives up."""
        entry = self.register(place)
        self.commit(place)
        self.call(entry, status=400)
        self.letter(entry)
        self.look()
        self.tombstone(entry, DEAD_LETTERED)
        return entry

    def history(self) -> History:
        """Return the run as it stands, with the tables that belong to it."""
        self.look()
        tables = self._tables()
        return History(
            group=GROUP,
            cluster_id=CLUSTER,
            wait_topic=WAIT,
            published=list(self.published),
            calls=list(self.calls),
            looks=list(self.looks),
            wait_log=list(self.wait_log),
            dead_letters=list(self.dead_letters),
            redelivered=list(self.redelivered),
            committed_at_end=dict(self.committed),
            ends={place: end for place, end in self.ends.items() if place[0] != INPUT},
            wait_rows=tables.wait,
            dead_letter_rows=tables.dead_letter,
            quarantine_rows=tables.quarantine,
            progress_rows=tables.progress,
            faults=list(self.faults),
            limits=LIMITS,
            told=TOLD,
            views=list(self.views) if self.views else None,
            registered_bytes={
                record.coordinates: SMALL_BYTES if record.coordinates not in self.large else TOLD.registration_bytes + 1
                for record in self.published
            },
            input_bytes={
                record.coordinates: self.input_bytes.get(record.coordinates, IN_HAND_BYTES) for record in self.published
            },
            timestamp_types={record.coordinates: "create" for record in self.published},
        )

    def _tables(self) -> Tables:
        last = {(entry.wait_id, entry.partition): entry for entry in self.wait_log if entry.committed}
        return Tables(
            [WaitRow(e.wait_id, e.place, e.registration) for e in last.values() if e.registration],
            [self._row(letter) for letter in self.dead_letters if letter.committed],
            [QuarantineRow((WAIT, *entry.place), entry.unreadable) for entry in self.wait_log if entry.unreadable],
            [ProgressRow(*place, end) for place, end in self.ends.items() if place[0] in (WAIT, DLQ)],
        )

    def _row(self, letter: Republished) -> DeadLetterRow:
        said = letter.lineage
        if said is None:
            return DeadLetterRow(letter.place, letter.content, None, None, None, None, None, None, None, None, None)
        failed = any(
            one.reason == FAILED and one.lineage and one.lineage.wait_id == said.wait_id for one in self.dead_letters
        )
        finished = any(one.wait_id == said.wait_id and one.outcome == DONE for one in self.wait_log)
        return DeadLetterRow(
            letter.place,
            letter.content,
            letter.reason,
            letter.time_ms,
            said.wait_id,
            said.original,
            said.timestamp_ms,
            said.registration,
            said.group,
            said.instance,
            said.delivery,
            finished_late=letter.reason == EXPIRED and (failed or finished),
            timestamp_type=said.timestamp_type,
            error_class=letter.error_class,
            error_message=letter.error_message,
            error_stacktrace=letter.error_stacktrace,
        )

    def _consumed(self, place: Coordinates) -> tuple[Coordinates, int, int]:
        for again in self.redelivered:
            if again.place == place:
                assert again.lineage is not None
                return again.lineage.original, again.timestamp_ms, again.lineage.delivery
        record = next(one for one in self.published if one.coordinates == place)
        return place, record.timestamp_ms, 1

    def _seen(self) -> Look:
        if self.views_at_looks:
            self.view()
        waits = {number: self.ends[WAIT, number] for number in range(WAIT_PARTITIONS)}
        letters = {place: end for place, end in self.ends.items() if place[0] in (DLQ, AGAIN)}
        return Look(self.now_ms, self.now_ms + 2, dict(self.committed), waits, dict(waits), letters)

    def _append(self, partition: Partition) -> int:
        self.ends[partition] += 1
        return self.ends[partition] - 1

    def _entry(self, entry: WaitEntry) -> WaitEntry:
        offset = self._append((WAIT, entry.partition))
        placed = replace(entry, offset=offset, append_ms=self.now_ms)
        self.wait_log.append(placed)
        return placed


def clean_run(views_at_looks: bool = False) -> Script:
    """Return the script of it: most are done, some fail, one is too large, and processes die.

    All that at-least-once allows is in it too: done and exported, `failed` and `expired`, registered again by the next
    owner, done twice, redelivered, exported by an aborted transaction and then for good, finished after its export.

    Args:
        views_at_looks: whether somebody looks at the tables with each look at the cluster.
    """
    script = Script(views_at_looks=views_at_looks)
    for number in range(30):
        script.done(script.publish(number % 3), f"processor-{1 + number % 2}/1")
    for number in range(4):
        script.failed(script.publish(number % 3))
    large = script.publish(1)
    script.large.add(large)
    script.unregistered(large, UNREGISTRABLE)
    script.commit(large)
    script.look()
    _a_kill_among_five(script)
    _a_failed_one_expires_too(script)
    _a_redelivery(script)
    _a_zombie_wakes(script)
    for number in range(6):
        script.done(script.publish(number % 3))
    script.wait(500)
    return script


def _a_kill_among_five(script: Script) -> None:
    """Play a kill with five records in flight: committed, in flight, answered, uncommitted, and an aborted export."""
    places = [script.publish(2) for _ in range(5)]
    entries = [script.register(place, "processor-2/1") for place in places]
    script.commit(places[2])
    script.look()
    script.call(entries[0])
    script.call(entries[1], status=499)
    script.fault("kill", "processor-2")
    # What was not committed comes to the other instance, under its id.
    again = [script.register(place) for place in places[3:]]
    script.commit(places[4])
    script.look()
    for entry in again:
        script.call(entry)
        script.tombstone(entry)
    for entry in entries[:3]:
        script.export(entry, committed=False)
        script.export(entry)
        script.look()


def _a_failed_one_expires_too(script: Script) -> None:
    """Play a kill between a `failed` dead letter and its tombstone."""
    place = script.publish(0)
    entry = script.register(place)
    script.commit(place)
    script.call(entry, status=400)
    script.letter(entry)
    script.fault("kill", "processor-1")
    script.export(entry)


def _a_redelivery(script: Script) -> None:
    """Play an expiry under the policy `redeliver`, whose second delivery is done."""
    place = script.publish(1)
    entry = script.register(place, "processor-3/1", "redeliver")
    script.commit(place)
    script.fault("kill", "processor-3")
    again = script.redeliver(entry)
    script.look()
    script.done(again.place, "processor-4/1")


def _a_zombie_wakes(script: Script) -> None:
    """Play a frozen processor that finishes, and fails, what had been exported while it stalled."""
    places = [script.publish(0) for _ in range(2)]
    entries = [script.register(place, "processor-4/1") for place in places]
    script.commit(places[1])
    script.look()
    fault = script.fault("freeze", "processor-4", for_ms=200)
    for entry in entries:
        script.export(entry)
    script.faults[-1] = type(fault)(fault.name, fault.target, fault.began_ms, script.now_ms, fault.happened)
    script.call(entries[0])
    script.tombstone(entries[0])
    script.letter(entries[1])
    script.tombstone(entries[1], DEAD_LETTERED)
