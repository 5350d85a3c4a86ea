"""Whether log, dead letters and tables agree at the end of a scenario, whose records are too many for the checker."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.chaos.stage import Place
from tests.support.kafka_io import read_all, read_each

DEAD_LETTER_IDS = "select wait_expiration_uuid from dead_letter"


@dataclass(slots=True)
class WaitLog:
    """What a wait topic holds, committed.

    ``outcomes`` counts tombstones, ``done_by_second`` those of processors by the broker's time; ``open`` has the
    IDs without one; ``registered`` the offsets of each input partition that have a registration; ``false_exports`` the
    IDs whose export found no open registration, or after which a processor still finished the record.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    done_by_second: Counter[int] = field(default_factory=Counter)
    open: set[bytes] = field(default_factory=set)
    exported: set[bytes] = field(default_factory=set)
    registered: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    false_exports: list[bytes] = field(default_factory=list)

    def take(self, key: bytes, value: bytes | None, headers: Mapping[str, bytes | None], append_ms: int) -> None:
        """Take the next entry; entries of one key come in the order of the log."""
        if value is not None:
            self.open.add(key)
            partition, offset = headers["ORIGINAL_PARTITION"], headers["ORIGINAL_OFFSET"]
            self.registered[int(partition or b"")].add(int(offset or b""))
            return
        outcome = (headers["WAIT_OUTCOME"] or b"").decode()
        self.outcomes[outcome] += 1
        if outcome == "expired":
            if key not in self.open:
                self.false_exports.append(key)
            self.exported.add(key)
        else:
            self.done_by_second[append_ms // 1000] += 1
            if key in self.exported:
                self.false_exports.append(key)
        self.open.discard(key)


def read_wait_log(place: Place) -> WaitLog:
    """Read a wait topic from its beginning to its current end; raises KafkaException."""
    found, settings = WaitLog(), place.settings
    for record in read_each(settings.kafka.bootstrap_servers, settings.wait.topic, "read_committed"):
        found.take(record.key or b"", record.value, dict(record.headers), record.timestamp_ms)
    return found


def inexact(place: Place, log: WaitLog, published: int, *, expires: bool = True) -> Iterator[str]:
    """Yield what is wrong with a log that was read to its end, its dead letters and their table.

    Args:
        place: of the run.
        log: its wait topic.
        published: how many records were.
        expires: whether a processor was killed, so that some registrations have to expire.
    """
    registered = sum(len(offsets) for offsets in log.registered.values())
    if registered != published:
        yield f"{published} records were published, {registered} of them ever registered"
    if log.open:
        yield f"{len(log.open)} registrations are open at the end"
    if log.false_exports:
        yield f"{len(log.false_exports)} false exports, {log.false_exports[0]!r} among them"
    if not log.outcomes["done"]:
        yield "nothing was done"
    if expires and not log.outcomes["expired"]:
        yield "nothing expired, although a processor was killed: nothing was shown about exports"
    letters = read_all(place.settings.kafka.bootstrap_servers, place.settings.dead_letter.topic, "read_committed")
    ids = [letter.text("WAIT_EXPIRATION_UUID").encode() for letter in letters]
    expired = [key for key, letter in zip(ids, letters, strict=True) if letter.text("DLQ_REASON") == "expired"]
    if sorted(expired) != sorted(log.exported) or len(expired) != log.outcomes["expired"]:
        yield f"{len(expired)} expired dead letters for {log.outcomes['expired']} expired tombstones"
    rows = sorted(key.encode() for (key,) in place.database.rows(place.settings, DEAD_LETTER_IDS))
    if rows != sorted(ids):
        yield f"{len(rows)} dead letters in the table, {len(ids)} in the topic"
