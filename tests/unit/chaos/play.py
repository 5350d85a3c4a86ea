"""Plants a history into a clean run: each method is a step of `histories.txt`, and acts on the current registration."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, cast

from tests.chaos.history.decoding import UNREADABLE_HEADERS
from tests.chaos.history.entries import Registration, TopicRecord, Unreadable
from tests.chaos.history.history import FaultDone, History, MemorySample, ProgressRow, QuarantineRow, Tables, WaitRow
from tests.unit.chaos.script import (
    ATTEMPT_MS,
    BYTES,
    DLQ,
    INPUT,
    MOST_REGISTERED_BYTES,
    SKEW_MS,
    TTL_MS,
    WAIT,
    WAIT_PARTITIONS,
    Script,
    changed_settings,
    play_clean_run,
)
from wait_registry.demo.manifest import fingerprint
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome

CONSTANTS = {"NO_HEADERS": fingerprint(None, None, ()).headers, "UNREADABLE": UNREADABLE_HEADERS}
_OF_ENTRY = {one: one for one in ("call", "letter", "export", "expire")} | {"stone": "tombstone"}
_OF_PLACE = ("commit", "done", "unregistered")
# Lists of the tables, by their names in the steps.
ROWS = {f"{name}_rows": name for name in ("wait", "dead_letter", "quarantine", "progress")}
Planted = tuple[str, str, str]
"""The rules that find a history, its name, its steps."""


def planted() -> Iterator[Planted]:
    """Read the histories, each with one of its alternatives."""
    text = re.sub(r"(?m)^#.*\n", "", (Path(__file__).parent / "histories.txt").read_text())
    for rules, name, steps in re.findall(r"(?m)^([a-z_ ]*): (.+)\n((?:    .+\n)+)", text):
        parts = re.split(r"\{(.*?)\}", " ".join(steps.split()))
        for chosen in product(*(part.split("|") if number % 2 else [part] for number, part in enumerate(parts))):
            yield rules, name, "".join(chosen)


class Play(Script):
    """A clean run, and what is done to it. Lists are changed in it, and after `end` in its history."""

    def __init__(self) -> None:
        super().__init__()
        play_clean_run(self)
        self.taken: list[Registration] = []
        self.place = ("", 0, 0)
        self.saved: Any = None
        self._ended: History | None = None
        self._began_ms = 0

    def plant(self, steps: str) -> History:
        """Do these steps and return the history."""
        for step in filter(None, map(str.strip, steps.split(";"))):
            verb, *words = step.split()
            fields = dict(word.split("=") for word in words if "=" in word)
            values = [self._value(word) for word in words if "=" not in word]
            self._do(verb, *values, **{name: self._value(word, added=True) for name, word in fields.items()})
        return self._ended or self.history()

    def _do(self, verb: str, *values: Any, **fields: Any) -> None:
        """Do a step of ours, with what it is about."""
        if verb in _OF_ENTRY:
            getattr(self, _OF_ENTRY[verb])(self.entry, *values)
        elif verb in _OF_PLACE:
            getattr(self, verb)(self.place, *values)
        else:
            getattr(self, verb)(*values, **fields)

    def _value(self, word: str, *, added: bool = False) -> Any:
        if word.startswith("@"):
            name, more = re.fullmatch(r"@(\w+?)([+-]\d+)?", word).groups()  # type: ignore[union-attr]
            found = self.things[name]()
            return found + int(more) if more else found
        if added and word.startswith("+"):
            return lambda old: old + int(word[1:])
        try:
            return CONSTANTS.get(word) or literal_eval(word)
        except (ValueError, SyntaxError):
            return word

    @property
    def registrations(self) -> list[Registration]:
        return [entry for entry in self.wait_log if isinstance(entry, Registration)]

    @property
    def entry(self) -> Registration:
        """The current registration."""
        return self.taken[-1]

    @property
    def expires_at_ms(self) -> int:
        return self.entry.expires_at_ms

    # What is registered.

    def an_old_one(self) -> None:
        """Go to a registration of the clean run that was done long before the first fault."""
        self.taken.append(next(one for one in self.registrations if one.offset == 4))

    def take(self, policy: str = "dlq") -> None:
        """Register and commit a new record, long after the last fault."""
        self.wait(30_000)
        self.publish()
        self.register(policy=policy)
        self.commit(self.place)
        self.poll()

    def take_at_once(self, count: int = 1, instances: int = 1, size: int = BYTES) -> None:
        """Register and commit new records of this size, instance by instance."""
        for number in range(count):
            self.publish(2)
            self.register(f"processor-{1 + number % instances}/1")
            self.commit(self.place)
            self._resize(bytes=size)

    def publish(self, partition: int = 1) -> None:
        self.place = self.publish_record(partition)

    def register(self, instance: str = "processor-1/1", policy: str = "dlq") -> None:
        """Register what was published, or redelivered, last."""
        self.taken.append(self.register_record(self.place, instance, policy))

    def again(self, instance: str = "processor-1/1") -> None:
        """Register the current record again."""
        self.taken.append(self.register_record(self.entry.original, instance))

    def back(self) -> None:
        """Go back to the registration before."""
        self.taken.pop()

    def fetch_together(self, count: int, size: int) -> None:
        """Register records of this size in one fetch."""
        fetched_ms = self.now_ms + 20
        for _ in range(count):
            self.take_at_once(size=size)
            self.change_entry(expires_at_ms=fetched_ms + TTL_MS)

    def rename(self) -> None:
        """Give everything of the current id another one."""
        own, other = self.entry.wait_id, "00000000" + self.entry.wait_id[8:]
        for number, entry in enumerate(self.wait_log):
            if entry.wait_id == own:
                self.wait_log[number] = replace(entry, wait_id=other)
        self.change("calls", wait_id=other)

    def commit_seen_too_early(self) -> None:
        """Have the last poll before the current registration show a commit behind its record."""
        topic, partition, offset = self.entry.original
        before = [poll for poll in self.polls if poll.wait_ends[self.entry.partition] <= self.entry.offset][-1]
        early = replace(before, committed={**before.committed, (topic, partition): offset + 1})
        self.polls[self.polls.index(before)] = early

    # What is called, resolved and exported.

    def stone_elsewhere(self) -> None:
        self.tombstone(replace(self.entry, partition=(self.entry.partition + 1) % WAIT_PARTITIONS))

    def stone_as(self, wait_id: str, outcome: str) -> None:
        self.tombstone(replace(self.entry, wait_id=wait_id), outcome)

    def stone_unregistered(self, outcome: str) -> None:
        """Write a tombstone of what was published, and isn't registered yet."""
        not_yet = self.register_record(self.place)
        self.wait_log.pop()
        self.ends[WAIT, not_yet.partition] -= 1
        self.tombstone(not_yet, outcome)

    def fail(self, *statuses: int) -> None:
        """Call with these answers, and dead-letter."""
        for status in statuses:
            self.call(self.entry, status)
        self.letter(self.entry)
        self.poll()
        self.tombstone(self.entry, Outcome.DEAD_LETTERED)

    def redeliver(self) -> None:
        self.place = self.redeliver_record(self.entry)

    def redeliver_in_vain(self, times: int) -> None:
        for _ in range(times):
            self.fault("kill", "processor-1")
            self.redeliver()
            self.register(policy="redeliver")
            self.commit(self.place)

    def unregistrable(self, count: int = 1, reason: str = Reason.UNREGISTRABLE, large: bool = True) -> None:
        """Dead-letter what was published last without registering it, and commit."""
        if large:
            self.large()
        for _ in range(count):
            self.unregistered(self.place, reason)
        self.commit(self.place)

    def large(self) -> None:
        self._resize(registered_bytes=MOST_REGISTERED_BYTES + 1)

    def _resize(self, **sizes: Any) -> None:
        self.inputs = [replace(one, **sizes) if one.place == self.place else one for one in self.inputs]

    def end_first(self) -> None:
        self._each(self.finish, [self.taken.pop(0)])

    def each(self, *verbs: str) -> None:
        """Do something to each registration that was taken."""
        self._each(lambda: [self._do(verb) for verb in verbs], self.taken)

    def finish(self) -> None:
        self.call(self.entry, last_ms=5)
        self.tombstone(self.entry)

    def _each(self, act: Callable[[], object], entries: Iterable[Registration]) -> None:
        everything = self.taken
        for entry in entries:
            self.taken = [entry]
            act()
        self.taken = everything

    def started(self) -> None:
        """Have the last call start at the time that was remembered."""
        self.change("calls", started_ms=self._began_ms)

    def overlap_by_half(self) -> None:
        """Call for half of what was taken, and for the rest when half the time of an attempt is over."""
        self.wait(5)
        began_ms = self.now_ms
        self.wait(ATTEMPT_MS)
        for number, entry in enumerate(self.taken):
            started_ms = began_ms + (0 if 2 * number < len(self.taken) else ATTEMPT_MS - 200)
            call = self.call(entry)
            self.calls[-1] = replace(call, started_ms=started_ms)
            self.tombstone(entry)

    def hang_up(self) -> None:
        """Call, and give up; the downstream notices it 240 ms later."""
        self.call(self.entry, 499, 10)
        self.change("calls", finished_ms=lambda old: old + 240)

    def swap_keys_of_calls(self) -> None:
        one, other = self.calls[-2:]
        self.calls[-2:] = [replace(one, wait_id=other.wait_id), replace(other, wait_id=one.wait_id)]

    def chunk(self, partition: int, count: int, policy: str = "dlq") -> None:
        """Export this number of one partition in one transaction."""
        wanted: list[Registration] = []
        while len(wanted) < count:
            self.publish()
            self.register(policy=policy)
            self.commit(self.place)
            if self.entry.partition == partition:
                wanted.append(self.entry)
            else:
                self.finish()
        self.fault("kill", "processor-1")
        self.taken, known = wanted, len(self.redelivered)
        self.expire(self.entry)
        self.each("export" if policy == "dlq" else "redeliver")
        # One transaction: no ends between the tombstones.
        own = [n for n, one in enumerate(self.wait_log) if one.outcome and one.partition == partition]
        for number, index in enumerate(own[-count:]):
            stone = self.wait_log[index]
            self.wait_log[index] = replace(stone, offset=stone.offset - number)
        for again in self.redelivered[known:]:
            self.done(again.place)

    # Time, polls and faults.

    def wait_for_expiry(self, ms: int) -> None:
        """Wait until this time after (before, if negative) the expiry."""
        self.wait(self.expires_at_ms + ms - self.now_ms)

    def stall(self, ms: int) -> None:
        """Let time pass without polls."""
        self.now_ms += ms

    def since_now(self) -> None:
        """Remember the time."""
        self._began_ms = self.now_ms

    def expire_by_then(self) -> None:
        """Have the current registration's time to live begin at the time that was remembered."""
        self.change_entry(expires_at_ms=self._began_ms + TTL_MS)

    def fault_since(self, name: str, target: str) -> None:
        """Have a fault last from the time that was remembered until now."""
        self.faults.append(FaultDone(name, target, self._began_ms, self.now_ms, "state T"))

    def fault_before_calls(self, target: str) -> None:
        began_ms = self.calls[-1].started_ms - 2_000
        self.faults.append(FaultDone("kill", target, began_ms, began_ms + 1_000, "pid 7 gone"))

    def save(self) -> None:
        """Read the tables, and keep them to be shown later."""
        self.saved = self.snapshot()

    def unseen_letter(self) -> None:
        """Have no poll see the last dead letter."""
        letter = self.dead_letters[-1]
        place = (letter.topic, letter.partition)
        self.poll()
        for number, poll in enumerate(self.polls):
            ends = {**poll.letter_ends, place: min(poll.letter_ends.get(place, 0), letter.offset)}
            self.polls[number] = replace(poll, letter_ends=ends)
        self.end()
        self.put("polls", self.polls)

    def blind_polls(self) -> None:
        """Have no poll know the dead letter topic; only the reading at the end shows its letters."""
        self.put("polls", [replace(poll, letter_ends={}, committed={}) for poll in self.polls])

    def lower_ends(self) -> None:
        self.change("polls", -1, wait_ends=dict.fromkeys(range(WAIT_PARTITIONS), 0))

    # What is changed in lists and tables.

    def end(self) -> None:
        """Build the history: what comes after changes that, and its tables."""
        self._ended = self.history()

    def put(self, name: str, value: Any) -> None:
        """Have a list, or another part of the history, be this."""
        if self._ended is None:
            setattr(self, name, value)
        elif name in ROWS and self._ended.tables is not None:
            self._ended = replace(self._ended, tables=self._ended.tables._replace(**{ROWS[name]: value}))
        else:
            self._ended = replace(self._ended, **{name: value})

    def policy(self, policy: str) -> None:
        self.end()
        self.put("settings", changed_settings(expiry_policy=policy))

    def sample(self, name: str, held: int) -> None:
        self.end()
        self.put("samples", [MemorySample(self.now_ms, name, held)])

    def change(self, name: str, which: int | str | None = None, **paths: Any) -> None:
        """Change fields of one of a list, by their paths (``content__key``); a function gets the old value.

        Args:
            name: of the list.
            which: its number, or "field:value"; None is the last one of the current registration's id.
            paths: the new values.
        """
        items = list(self._items(name))
        number = which if isinstance(which, int) else max(n for n, item in enumerate(items) if self._fits(item, which))
        for path, value in paths.items():
            items[number] = _changed(items[number], path.split("__"), value)
        self.put(name, items)

    def change_entry(self, **paths: Any) -> None:
        number = self.wait_log.index(self.entry)
        self.change("wait_log", number, **paths)
        self.taken[-1] = cast(Registration, self.wait_log[number])

    def drop(self, name: str, which: int | str | None = None) -> None:
        """Remove one of a list; without a number all that fit."""
        items = list(self._items(name))
        if isinstance(which, int):
            del items[which]
        elif which is None:
            items = [item for item in items if not self._fits(item, which)]
        else:
            items.remove(next(item for item in items if self._fits(item, which)))
        self.put(name, items)

    def add(self, name: str, item: object) -> None:
        self.put(name, [*self._items(name), item])

    def _items(self, name: str) -> Iterable[Any]:
        holder = self._ended.tables if self._ended is not None and name in ROWS else self._ended or self
        items: Iterable[Any] = getattr(holder, ROWS.get(name, name))
        return items

    def _fits(self, item: Any, which: str | None) -> bool:
        if which is not None:
            field, value = which.split(":")
            return str(getattr(item, field)) == value
        return bool(getattr(getattr(item, "record", item), "wait_id", "") == self.entry.wait_id)

    def rubbish(self, wait_id: str = "rubbish", partition: int = 0) -> None:
        """Have another client write to the wait topic what can't be read."""
        self._log(Unreadable(partition, 0, 0, wait_id, True, "no WAIT_OUTCOME"))

    def rubbish_of_ours(self) -> None:
        self.rubbish(self.entry.wait_id, self.entry.partition)

    def foreign_letter(self) -> None:
        content = fingerprint(None, b"hello", ())
        self.dead_letters.append(TopicRecord(DLQ, 0, self._append((DLQ, 0)), self.now_ms, True, content))

    @property
    def things(self) -> dict[str, Callable[[], Any]]:
        """What steps can name by @."""
        log = self.wait_log
        aborted = [letter for letter in self.dead_letters if not letter.committed]
        tables = self.history().tables
        assert tables is not None
        rows = tables.dead_letter
        done = {entry.wait_id for entry in log if entry.outcome == Outcome.DONE}
        return {
            "a_place": lambda: next(o.place for o in self.registrations if o.partition == self.entry.partition),
            "a_redelivery": lambda: self.redelivered[0].place,
            "wait_row": lambda: WaitRow(self.entry.wait_id, self.entry),
            "quarantined": lambda: QuarantineRow((WAIT, *self.entry.place), "?"),
            "progress_of_input": lambda: ProgressRow(INPUT, 0, 3),
            "row_of_aborted": lambda: rows[0]._replace(record=aborted[-1]),
            "row_of_nothing": lambda: rows[0]._replace(record=replace(rows[0].record, offset=7_000)),
            "rows_with_aborted": lambda: [*self.shown.dead_letter, rows[0]._replace(record=aborted[-1])],
            "rows_unmarked": lambda: [
                row._replace(finished_late=row.finished_late and not self._fits(row, None))
                for row in self.shown.dead_letter
            ],
            # What was exported, and then done.
            "done_late": lambda: next(
                n for n, row in enumerate(rows) if row.finished_late and getattr(row.record, "wait_id", "") in done
            ),
            "saved_wait": lambda: self.saved.wait,
            "saved_progress": lambda: self.saved.progress,
            "due_ms": lambda: self.expires_at_ms + SKEW_MS,
            "expires_at_ms": lambda: self.expires_at_ms,
            "now_ms": lambda: self.now_ms,
        }

    @property
    def shown(self) -> Tables:
        """The tables as they were last looked at."""
        return self.snapshots[-1]


def _changed(item: Any, path: list[str], value: Any) -> Any:
    first, rest = path[0], path[1:]
    if isinstance(item, list):
        return [_changed(each, rest, value) if n == int(first) else each for n, each in enumerate(item)]
    old = getattr(item, first)
    new = _changed(old, rest, value) if rest else value(old) if callable(value) else value
    return item._replace(**{first: new}) if hasattr(item, "_replace") else replace(item, **{first: new})
