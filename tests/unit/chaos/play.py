"""Plants a history into a clean run, step by step: each method is a step of `histories.txt`."""

from __future__ import annotations

import re
from ast import literal_eval
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import ANY

from tests.chaos.history.entries import Registration, Republished, Tombstone, TopicRecord, Unreadable, WaitEntry
from tests.chaos.history.history import (
    DeadLetterRow,
    FaultDone,
    History,
    Input,
    MemorySample,
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
from wait_registry.settings.processor import Ordering

CLUSTER, GROUP, WAIT, DLQ, OPERATIONS, INPUT = "cluster", "billing", "wait", "dlq", "operations", "orders"
AGAIN, RETRIES = f"{INPUT}.{GROUP}.redeliver", f"{INPUT}.{GROUP}.retry.10s"
START_MS = 1_795_000_000_000
TTL_MS, SKEW_MS, POLLS_MS = 8_000, 500, 1_000
WAIT_PARTITIONS, REGISTERED_BYTES, MOST_REGISTERED_BYTES = 3, 4_100, 100_000
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
        "operations.topic": OPERATIONS,
        "processor.group": GROUP,
        "processor.topics": (INPUT,),
        "processor.ttl_s": TTL_MS / 1000,
        "processor.handler_timeout_s": 1,
        "processor.max_attempts": 2,
        "processor.max_deliveries": 3,
        "processor.max_in_flight": 6,
        "processor.prefetch_max": 12,
        "processor.http.retry_statuses": (503,),
        "processor.retry.delays": ("10s",),
        "processor.http.discard_statuses": (404,),
        "sweeper.chunk_rows": 2,
    },
)
# Lists of the tables, by their names in the steps.
ROWS = {f"{name}_rows": name for name in ("wait", "dead_letter", "quarantine", "progress")}


# Without comments, each with the rule that finds it (none for a near miss), its name, and its steps.
_TEXT = re.sub(r"(?m)^#.*\n", "", (Path(__file__).parent / "histories.txt").read_text())
_HISTORIES = [
    (rule, name, " ".join(steps.split()))
    for rule, name, steps in re.findall(r"(?m)^([a-z_]*): (.+)\n((?:    .+\n)+)", _TEXT)
]
CLEAN = _HISTORIES[0][2]


def planted() -> Iterator[tuple[str, str, str]]:
    """Return the histories, each with one of its alternatives."""
    for rule, name, steps in _HISTORIES[1:]:
        parts = re.split(r"\{(.*?)\}", steps)
        for chosen in product(*(part.split("|") if number % 2 else [part] for number, part in enumerate(parts))):
            yield rule, name, "".join(chosen)


class Play:
    """A run so far: most steps let a little time pass and act on the current record or registration.

    Lists are changed in the run, and tables after `end`.
    """

    def __init__(self, *, snapshots_at_polls: bool = False) -> None:
        # Some records are redelivered, the others aren't.
        self.settings = SETTINGS
        self.set("processor", expiry_policy=ANY)
        self.now_ms = self.began_ms = START_MS
        self.inputs: list[Input] = []
        self.calls: list[Call] = []
        self.polls: list[Poll] = []
        self.wait_log: list[WaitEntry] = []
        self.dead_letters: list[TopicRecord] = []
        self.redelivered: list[TopicRecord] = []
        self.committed: dict[Partition, int] = {}
        self.ends: dict[Partition, int] = defaultdict(int, {(OPERATIONS, 0): 3})
        self.faults: list[FaultDone] = []
        self.snapshots: list[Tables] = []
        self.samples: list[MemorySample] = []
        self.tables: Tables | None = None
        self.modes: tuple[str, ...] = ("eager",)
        self.taken: list[Registration] = []
        self.place: Coordinates = ("", 0, 0)
        self._ended = False
        self._snapshots_at_polls = snapshots_at_polls
        self.do(CLEAN)
        self.taken = []

    def plant(self, steps: str) -> History:
        """Do these steps and return the history."""
        self.do(steps)
        return self.history()

    def do(self, steps: str) -> None:
        """Do these steps."""
        for step in filter(None, map(str.strip, steps.split(";"))):
            verb, *words = step.split()
            fields = dict(word.split("=") for word in words if "=" in word)
            values = [self._value(word) for word in words if "=" not in word]
            getattr(self, verb)(*values, **{name: self._value(word, added=True) for name, word in fields.items()})

    def history(self) -> History:
        """Return the run so far, with the tables that belong to it unless they were changed."""
        if not self._ended:
            self.end()
        own = {field.name: getattr(self, field.name) for field in fields(History) if hasattr(self, field.name)}
        ends = {place: end for place, end in self.ends.items() if place[0] != INPUT}
        more = {"ends": ends, "snapshots": self.snapshots or None, "committed_at_end": self.committed}
        return History(**{"cluster_id": CLUSTER, **own, **more})

    def _value(self, word: str, *, added: bool = False) -> Any:
        if word.startswith("@"):
            name, more = re.fullmatch(r"@(\w+?)([+-]\d+)?", word).groups()  # type: ignore[union-attr]
            found = self._things[name]()
            return found + int(more) if more else found
        if added and word.startswith("+"):
            return lambda old: old + int(word[1:])
        try:
            return literal_eval(word)
        except (ValueError, SyntaxError):
            return word

    @property
    def registrations(self) -> list[Registration]:
        return [entry for entry in self.wait_log if isinstance(entry, Registration)]

    @property
    def entry(self) -> Registration:
        """The current registration."""
        return self.taken[-1]

    # What is published and registered.

    def publish(self, partition: int = 1) -> None:
        self.wait(5)
        self.place, number = (INPUT, partition, self._append((INPUT, partition))), len(self.inputs)
        headers = [("number", b"%d" % number), ("null", None)]
        content = fingerprint(b"key-%d" % number, b"value-%d" % number, headers)
        self.inputs.append(Input(self.place, self.now_ms, content, "create", REGISTERED_BYTES))

    def register(self, instance: str = "processor-1/1", policy: str = "dlq") -> None:
        """Register what was published, or redelivered, last."""
        self.wait(3)
        registration = self._registration(instance, policy)
        self._append((WAIT, registration.partition))
        self.wait_log.append(registration)
        self.taken.append(registration)

    def _registration(self, instance: str, policy: str) -> Registration:
        again = next((o for o in self.redelivered if o.place == self.place and isinstance(o, Republished)), None)
        original = self.place if again is None else again.original
        record = self._published(original)
        timestamp_ms = record.timestamp_ms if again is None else again.append_ms
        wait_id = derive_wait_id(CLUSTER, *self.place, GROUP, timestamp_ms)
        partition = int(wait_id[-4:], 16) % WAIT_PARTITIONS
        return Registration(
            *(partition, self.ends[WAIT, partition], self.now_ms, wait_id, True),
            original=original,
            timestamp_ms=record.timestamp_ms,
            content=record.content,
            expires_at_ms=self.now_ms + TTL_MS,
            group=GROUP,
            instance=instance,
            delivery=1 if again is None else again.delivery,
            dead_letter_topic=DLQ,
            expiry_policy=policy,
            max_deliveries=3 if again is None or again.max_deliveries is None else again.max_deliveries,
            idempotency_key=derive_wait_id(CLUSTER, *original, GROUP, record.timestamp_ms),
            source=None if again is None else self.place,
        )

    def commit(self) -> None:
        """Commit behind what was published, or redelivered, last."""
        self.wait(2)
        partition, offset = self.place[:2], self.place[2]
        self.committed[partition] = max(offset + 1, self.committed.get(partition, 0))

    def at(self, *numbers: int) -> None:
        """Go to the registrations with these numbers."""
        self.taken = [self.registrations[number] for number in numbers]

    def take(self, policy: str = "dlq") -> None:
        """Register and commit a new record, long after the last fault."""
        self.wait(30_000)
        self.publish()
        self.register(policy=policy)
        self.commit()
        self.poll()

    def take_at_once(self, count: int = 1) -> None:
        """Register and commit new records."""
        for _ in range(count):
            self.publish(2)
            self.register()
            self.commit()

    def again(self, instance: str = "processor-1/1") -> None:
        """Register the current record again."""
        self.place = self.entry.original
        self.register(instance)

    def set(self, section: str, **fields: Any) -> None:
        """Change settings of the whole run, unchecked."""
        changed = getattr(self.settings, section).model_copy(update=fields)
        self.settings = self.settings.model_copy(update={section: changed})

    def key(self, key: str) -> None:
        """Give what was published last this key."""
        self._resize(content=replace(self._published(self.place).content, key=key))

    def back(self) -> None:
        """Go back to the registration before."""
        self.taken.pop()

    def commit_seen_too_early(self) -> None:
        """Have the last poll before the current registration show a commit behind its record."""
        topic, partition, offset = self.entry.original
        before = [poll for poll in self.polls if poll.wait_ends[self.entry.partition] <= self.entry.offset][-1]
        early = replace(before, committed={**before.committed, (topic, partition): offset + 1})
        self.polls[self.polls.index(before)] = early

    # What is called, resolved and exported.

    def call(self, status: int = 200, last_ms: int = 40) -> None:
        self.wait(3)
        started_ms, entry = self.now_ms, self.entry
        self.wait(last_ms)
        times = (started_ms, self.now_ms, started_ms / 1000, self.now_ms / 1000)
        number, body = len(self.calls) + 1, entry.content.value or ""
        key = derive_wait_id(CLUSTER, *entry.original, GROUP, entry.timestamp_ms)
        self.calls.append(
            Call(number, *times, entry.wait_id, *entry.original, entry.delivery, status, body, key, entry.instance)
        )

    def stone(self, outcome: str = Outcome.DONE, committed: bool = True, **paths: Any) -> None:
        """Write a tombstone of the current registration, or of one that differs in these fields."""
        self.wait(3)
        entry = self.entry
        for name, value in paths.items():
            entry = _changed(entry, [name], value)
        offset = self._append((WAIT, entry.partition))
        where = (entry.partition, offset, self.now_ms, entry.wait_id, committed)
        self.wait_log.append(Tombstone(*where, outcome=outcome))

    def done(self, instance: str = "processor-1/1") -> None:
        """Play the usual life of what was published, or redelivered, last."""
        self.register(instance)
        self.commit()
        self.poll()
        self.call()
        self.stone()

    def fail(self, *statuses: int) -> None:
        """Call with these answers, and dead-letter."""
        for status in statuses:
            self.call(status)
        self.letter()
        self.poll()
        self.stone(Outcome.DEAD_LETTERED)

    def expire(self, ms: int = 600) -> None:
        """Wait until this time after (before, if negative) the expiry."""
        self.wait(max(0, self.entry.expires_at_ms + ms - self.now_ms))

    def export(self, committed: bool = True) -> None:
        """Export: dead letter and tombstone, and their transaction's markers."""
        self.expire()
        self.letter(Reason.EXPIRED, committed)
        self.stone(Outcome.EXPIRED, committed)
        self._append((DLQ, self.dead_letters[-1].partition))
        self._append((WAIT, self.entry.partition))

    def redeliver(self) -> None:
        self.expire()
        self.republish((AGAIN, 0), delivery=self.entry.delivery + 1, max_deliveries=self.entry.max_deliveries)
        self.stone(Outcome.REDELIVERED)
        self._append((AGAIN, 0))
        self._append((WAIT, self.entry.partition))
        self.place = self.redelivered[-1].place

    def retry(self) -> None:
        """Send the current registration's record to the retry topic, which is ten seconds from its next call."""
        self.republish((RETRIES, 0), delivery=self.entry.delivery + 1, max_deliveries=self.entry.max_deliveries + 1)
        self.poll()
        self.stone(Outcome.RETRIED)
        self.place = self.redelivered[-1].place

    def letter(self, reason: str = Reason.FAILED, committed: bool = True) -> None:
        """Dead-letter the current registration."""
        texts = {"error_class": "ValueError", "error_message": ""}
        self.republish((DLQ, len(self.dead_letters) % 2), reason=reason, committed=committed, **texts)

    def republish(self, partition: Partition, **changed: Any) -> None:
        """Write the record of the current registration to a partition, with its lineage or what is changed of it."""
        self.wait(3)
        entry = self.entry
        record = self._published(entry.original)
        lineage: dict[str, Any] = {
            **{
                name: getattr(entry, name)
                for name in ("original", "wait_id", "instance", "delivery", "idempotency_key")
            },
            "timestamp_ms": record.timestamp_ms,
            "registration": entry.place,
            "group": GROUP,
            "committed": True,
            **({"time_ms": self.now_ms} if "reason" in changed else {}),
            **changed,
        }
        topic = self.dead_letters if partition[0] == DLQ else self.redelivered
        where = (*partition, self._append(partition), self.now_ms)
        topic.append(Republished(*where, content=record.content, **lineage))

    def unregistrable(self, reason: str = Reason.UNREGISTRABLE, large: bool = True) -> None:
        """Dead-letter what was published last without registering it, and commit."""
        if large:
            self._resize(registered_bytes=MOST_REGISTERED_BYTES + 1)
        self.taken.append(self._registration("processor-1/1", "dlq"))
        self.republish((DLQ, 0), reason=reason, registration=None)
        self.commit()

    def each(self, *verbs: str) -> None:
        """Do something to each registration that was taken."""
        everything = self.taken
        for entry in everything:
            self.taken = [entry]
            for verb in verbs:
                getattr(self, verb)()
        self.taken = everything

    def started(self) -> None:
        """Have the last call start at the time that was remembered."""
        self.change("calls", started_ms=self.began_ms)

    # Time, polls and faults.

    def wait(self, ms: int) -> None:
        """Let time pass, with polls."""
        until_ms = self.now_ms + ms
        while until_ms - self.now_ms > POLLS_MS:
            self.now_ms += POLLS_MS
            self._look()
        self.now_ms = until_ms

    def since_now(self) -> None:
        """Remember the time."""
        self.began_ms = self.now_ms

    def poll(self) -> None:
        self.wait(2)
        self._look()

    def fault(self, name: str, target: str, for_ms: int = 500) -> None:
        self.since_now()
        self.wait(for_ms)
        self.fault_since(name, target)

    def fault_since(self, name: str, target: str) -> None:
        """Have a fault last from the time that was remembered until now."""
        self.faults.append(FaultDone(name, target, self.began_ms, self.now_ms, "pid 7 gone"))

    def snapshot(self) -> None:
        """Read the tables, of a sink that is at the log's end."""
        self.snapshots.append(self._tables())

    def sample(self, name: str, held: int) -> None:
        self.samples.append(MemorySample(name, held))

    def end(self) -> None:
        """Read the tables: what comes after changes these."""
        self.poll()
        self.tables, self._ended = self._tables(), True

    def unseen_letter(self) -> None:
        """Have no poll see the last dead letter."""
        self.end()
        *place, offset = self.dead_letters[-1].place
        for number, poll in enumerate(self.polls):
            ends = {key: min(end, offset) if key == tuple(place) else end for key, end in poll.letter_ends.items()}
            self.polls[number] = replace(poll, letter_ends=ends)

    # What is changed in lists and tables.

    def put(self, name: str, value: Any) -> None:
        """Have a list, or another part of the history, be this."""
        if name in ROWS:
            assert self.tables is not None
            self.tables = self.tables._replace(**{ROWS[name]: value})
        else:
            setattr(self, name, value)

    def change(self, name: str, which: int | str | None = None, **paths: Any) -> None:
        """Change fields of one of a list, by their paths (``content__key``); a function gets the old value.

        Args:
            name: of the list.
            which: its number, or "field:value"; None is the last one of the current registration's id.
            paths: the new values.
        """
        items = self._items(name)
        number = which if isinstance(which, int) else max(n for n, item in enumerate(items) if self._fits(item, which))
        for path, value in paths.items():
            items[number] = _changed(items[number], path.split("__"), value)
        self.put(name, items)

    def change_entry(self, **paths: Any) -> None:
        number = self.wait_log.index(self.entry)
        self.change("wait_log", number, **paths)
        self.taken[-1] = next(one for one in self.registrations if one is self.wait_log[number])

    def drop(self, name: str, which: int | str | None = None) -> None:
        """Remove one of a list; without a number all that fit."""
        items = self._items(name)
        if isinstance(which, int):
            del items[which]
        else:
            items = [item for item in items if not self._fits(item, which)]
        self.put(name, items)

    def add(self, name: str, item: object) -> None:
        self.put(name, [*self._items(name), item])

    def _items(self, name: str) -> list[Any]:
        return list(getattr(self.tables if name in ROWS else self, ROWS.get(name, name)))

    def _fits(self, item: Any, which: str | None) -> bool:
        if which is not None:
            field, value = which.split(":")
            return str(getattr(item, field)) == value
        return bool(getattr(getattr(item, "record", item), "wait_id", "") == self.entry.wait_id)

    @property
    def _things(self) -> dict[str, Callable[[], Any]]:
        """What steps can name by @."""
        rows = self._tables().dead_letter
        aborted = [letter for letter in self.dead_letters if not letter.committed]
        return {
            "a_place": lambda: next(o.place for o in self.registrations if o.partition == self.entry.partition),
            "wait_row": lambda: WaitRow(self.entry.wait_id, self.entry),
            "progress_of_input": lambda: ProgressRow(INPUT, 0, 3),
            "row_of_aborted": lambda: rows[0]._replace(record=aborted[-1]),
            "wait_before": lambda: self.snapshots[-2].wait,
            "by_key": lambda: Ordering.KEY,
            "due_ms": lambda: self.entry.expires_at_ms + SKEW_MS,
        }

    def _resize(self, **sizes: Any) -> None:
        self.inputs = [replace(one, **sizes) if one.place == self.place else one for one in self.inputs]

    def _published(self, place: Coordinates) -> Input:
        return next(one for one in self.inputs if one.place == place)

    def _append(self, partition: Partition) -> int:
        self.ends[partition] += 1
        return self.ends[partition] - 1

    def _look(self) -> None:
        if self._snapshots_at_polls:
            self.snapshot()
        waits = {number: self.ends[WAIT, number] for number in range(WAIT_PARTITIONS)}
        letters = {place: end for place, end in self.ends.items() if place[0] in (DLQ, AGAIN, RETRIES)}
        self.polls.append(Poll(self.now_ms, self.now_ms + 2, dict(self.committed), waits, dict(waits), letters))

    def _tables(self) -> Tables:
        last = {(entry.wait_id, entry.partition): entry for entry in self.wait_log if entry.committed}
        return Tables(
            [WaitRow(entry.wait_id, entry) for entry in last.values() if isinstance(entry, Registration)],
            [DeadLetterRow(one, self._late(one)) for one in self.dead_letters if one.committed],
            [QuarantineRow((WAIT, *one.place), one.why) for one in self.wait_log if isinstance(one, Unreadable)],
            [ProgressRow(*place, end) for place, end in self.ends.items() if place[0] in (WAIT, DLQ, OPERATIONS)],
            self.now_ms,
        )

    def _late(self, letter: TopicRecord) -> bool:
        if not isinstance(letter, Republished) or letter.reason != Reason.EXPIRED:
            return False
        letters = (one for one in self.dead_letters if isinstance(one, Republished) and one.wait_id == letter.wait_id)
        failed = any(one.reason == Reason.FAILED for one in letters)
        return failed or any(one.wait_id == letter.wait_id and one.outcome == Outcome.DONE for one in self.wait_log)


def _changed(item: Any, path: list[str], value: Any) -> Any:
    first, rest = path[0], path[1:]
    if isinstance(item, list):
        return [_changed(each, rest, value) if n == int(first) else each for n, each in enumerate(item)]
    old = getattr(item, first)
    new = _changed(old, rest, value) if rest else value(old) if callable(value) else value
    return item._replace(**{first: new}) if hasattr(item, "_replace") else replace(item, **{first: new})
