"""One corpus of wait records for all that keeps the view or exports from it: shapes, histories, what can't be read.

A registration is a wait record as it must be read, and as it is in the log. What is expected of it is worked out
from its fields in `golden_corpus_expectation`, by nothing of the project's own.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tests.support.golden_vectors import binary, golden_vectors
from tests.support.kafka_io import Headers, Outgoing
from tests.support.wait_record_encoding import encode_wait_record
from wait_registry.demo.hostile import ODDITIES, hostile
from wait_registry.records.original import Original, PartialOriginal, Source, TimestampType
from wait_registry.records.times import format_utc_ms
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_record import WaitRecord

TOPIC, GROUP, INSTANCE = "orders", "billing", "host-1/2026-11-21T02:00:00Z"
TIMESTAMP_MS = 1_795_227_600_123
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HUGE_BYTES = 1_300_000
# What a compacted topic refuses, or what is no wait record at all.
NOT_IN_A_WAIT_TOPIC = ("null key", "null value (a tombstone)")


class History(StrEnum):
    """What is written of one id, in order: a wait record (w), a tombstone (t); ``,`` is a long way."""

    EXPIRES = "w"
    REGISTERED_TWICE = "w,w"
    REGISTERED_TWICE_AT_ONCE = "ww"
    RESOLVED_AT_ONCE = "wt"
    RESOLVED = "w,t"
    RESOLVED_TWICE = "w,t,t"
    REGISTERED_AGAIN = "w,t,w"
    REGISTERED_AGAIN_AT_ONCE = "wtw"
    BOTH_RESOLVED = "w,w,t"
    TOMBSTONE_FIRST = "t,w"
    TOMBSTONE_FIRST_AT_ONCE = "tw"
    TOMBSTONE_FIRST_AND_LAST = "t,w,t"
    ONLY_A_TOMBSTONE = "t"


@dataclass(frozen=True, slots=True)
class Registration:
    """One wait id: what it must be read as, how that is in the log, and its history."""

    name: str
    record: WaitRecord
    value: bytes
    headers: Headers
    history: History = History.EXPIRES

    @property
    def wait_id(self) -> str:
        """The key."""
        return self.record.wait_id

    def entries(self) -> Iterator[tuple[int, Entry]]:
        """Yield its entries, each with the number of the stretch of the log that it belongs to."""
        for stretch, letters in enumerate(self.history.split(",")):
            for letter in letters:
                yield stretch, Entry(self, self._wait() if letter == "w" else self.tombstone())

    def tombstone(self, outcome: Outcome = Outcome.DONE) -> Outgoing:
        return Outgoing(None, self.wait_id.encode(), tuple(tombstone_headers(outcome)))

    def _wait(self) -> Outgoing:
        return Outgoing(self.value, self.wait_id.encode(), self.headers)


@dataclass(frozen=True, slots=True)
class Malformed:
    """A record of the wait topic that must not become a row."""

    name: str
    outgoing: Outgoing


@dataclass(frozen=True, slots=True)
class Entry:
    """One record to be written to the wait topic, and whose it is."""

    of: Registration | Malformed
    outgoing: Outgoing


@dataclass(frozen=True, slots=True)
class Corpus:
    """The registrations and malformed records of one wait topic."""

    dead_letter_topic: str
    expires_at_ms: int
    fillers: int = 120

    def registrations(self) -> list[Registration]:
        """Return every shape expiring and resolved, every history, and plain ones between them."""
        shapes = list(self._shapes())
        resolved = [_with(shape, f"{shape.name}, resolved", History.RESOLVED) for shape in shapes]
        histories = [_with(self.plain(f"history {history}"), history.name, history) for history in History]
        return [*shapes, *resolved, *histories, *self.filling("filler", self.fillers)]

    def filling(self, name: str, count: int) -> list[Registration]:
        """Return plain registrations; every other one is resolved."""
        histories = (History.EXPIRES, History.RESOLVED)
        return [_with(self.plain(f"{name} {n}"), f"{name} {n}", histories[n % 2]) for n in range(count)]

    def plain(self, name: str, **changes: object) -> Registration:
        """Return a registration; fields of the original or of the wait record are changed by their names."""
        original = Original(TOPIC, 3, len(name), TIMESTAMP_MS, "create", b"customer-17", name.encode(), ())
        of_original = {field: changes.pop(field) for field in Original._fields if field in changes}
        record = WaitRecord(
            original=original._replace(**of_original),  # type: ignore[arg-type]
            wait_id=id_of(name),
            expires_at_ms=self.expires_at_ms,
            group=GROUP,
            instance=INSTANCE,
            delivery=1,
            dead_letter_topic=self.dead_letter_topic,
            expiry_policy="dlq",
            max_deliveries=3,
        )
        record = record._replace(**changes)  # type: ignore[arg-type]
        value, headers = encode_wait_record(record)
        return Registration(name, record, value, tuple(headers))

    def malformed(self) -> list[Malformed]:
        """Return what the golden vectors refuse as a wait record, and more of the kind."""
        found = []
        for file in ("wait_record", "wait_record_legacy"):
            for vector in golden_vectors(file):
                if vector.expected == "error" and vector.name not in NOT_IN_A_WAIT_TOPIC:
                    found.append(_from_vector(f"{file}: {vector.name}", vector.input))
        plain = self.plain("malformed").headers
        texts = {
            "half a surrogate pair in the headers": ("ORIGINAL_HEADERS", rb'[["\ud800",null]]'),
            "NUL in the instance": ("WAIT_INSTANCE", b"host\x001"),
            "an expiry in the year 10000": ("WAIT_EXPIRATION_TIME", b"+10000-01-01T00:00:00.000Z"),
        }
        for name, (header, value) in texts.items():
            headers = tuple((key, value if key == header else old) for key, old in plain)
            found.append(Malformed(name, Outgoing(b"{}", id_of(name).encode(), _with_id(headers, id_of(name)))))
        return [*found, Malformed("a tombstone of no wait id", Outgoing(None, b"no id", ()))]

    def _shapes(self) -> Iterator[Registration]:
        for index, name in enumerate(ODDITIES):
            odd = hostile(7, index)
            yield self.plain(f"hostile_{name}", key=odd.key, value=odd.value, headers=tuple(odd.headers))
        yield from self._originals()
        yield from self._deliveries()
        yield from self._legacy_format()

    def _originals(self) -> Iterator[Registration]:
        stamps: dict[str, tuple[int, TimestampType]] = {
            "no timestamp": (-1, "none"),
            "before 1970": (-86_400_001, "create"),
            "append time": (TIMESTAMP_MS, "append"),
            "beyond any calendar": (2**63 - 1, "create"),
            "before any calendar": (-(2**63), "create"),
        }
        for name, (timestamp_ms, timestamp_type) in stamps.items():
            yield self.plain(name, timestamp_ms=timestamp_ms, timestamp_type=timestamp_type)
        yield self.plain("the largest numbers", partition=2**31 - 1, offset=2**63 - 1)
        yield self.plain("huge", value=bytes(range(256)) * (HUGE_BYTES // 256))
        yield self.plain("null and empty headers", headers=(("a", None), ("a", b""), ("", None), ("", b"\xff\x00")))
        yield self.plain("numbers as text", key=b"00123", value=b"007", headers=(("number", b"00123"), ("n", b"1e3")))
        yield self.plain("JSON null", key=b"null", value=b"null", headers=(("null", b"null"), ("true", b"true")))

    def _deliveries(self) -> Iterator[Registration]:
        again = f"{TOPIC}.{GROUP}.redeliver"
        yield self.plain(
            "redelivered for the last time",
            source=Source(again, 0, 17),
            delivery=3,
            idempotency_key=id_of("its first delivery"),
            expiry_policy="redeliver",
            headers=(("tenant", b"acme"),),
        )
        yield self.plain("traced", traceparent=TRACEPARENT, tracestate="vendor=1")
        yield self.plain("a group of other letters", group="расчёты-€", instance="hôte-1")

    def _legacy_format(self) -> Iterator[Registration]:
        known: dict[str, object] = {"key": b"k", "value": b"{}", "headers": (("a", b"1"), ("b", None), ("c", b""))}
        json_object = b'{"a": "1", "b": null, "c": ""}'
        full: Headers = (
            ("ORIGINAL_TOPIC", TOPIC.encode()),
            ("PARTITION", b"3"),
            ("ORIGINAL_OFFSET", b"41"),
            ("ORIGINAL_KEY", b"k"),
            ("ORIGINAL_HEADERS", json_object),
        )
        yield self._older("legacy format", full, PartialOriginal(TOPIC, 3, 41, None, None, **known))  # type: ignore[arg-type]
        least = PartialOriginal(TOPIC, None, None, None, None, None, b"{}", ())
        yield self._older("legacy format, the least", full[:1], least)

    def _older(self, name: str, headers: Headers, original: PartialOriginal) -> Registration:
        record = WaitRecord(original, id_of(name), self.expires_at_ms, *(None,) * 6)
        zoneless = format_utc_ms(self.expires_at_ms).removesuffix("Z").encode()
        return Registration(name, record, original.value or b"", (*headers, ("WAIT_EXPIRATION_TIME", zoneless)))


def odd_names(corpus: Corpus) -> list[Registration]:
    """Return registrations with header names that not every client can send; only a wait record can hold them."""
    return [
        corpus.plain("NUL in a header's name", headers=(("a\0b", b"1"), ("plain", b"2"))),
        corpus.plain("half a surrogate pair in a header's name", headers=(("a\ud800", b"1"), ("plain", b"2"))),
    ]


def id_of(name: str) -> str:
    """Return the wait id of a name; the same in every combination."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def in_log_order(items: list[Registration | Malformed]) -> list[Entry]:
    """Return all entries as they are in the log: between two that are a long way apart are those of all other IDs."""
    stretches: dict[int, list[Entry]] = {}
    for item in items:
        entries = item.entries() if isinstance(item, Registration) else [(0, Entry(item, item.outgoing))]
        for stretch, entry in entries:
            stretches.setdefault(stretch, []).append(entry)
    return [entry for _, entries in sorted(stretches.items()) for entry in entries]


def _with(registration: Registration, name: str, history: History) -> Registration:
    renamed = registration.record._replace(wait_id=id_of(name))
    return replace(
        registration,
        name=name,
        record=renamed,
        headers=_with_id(registration.headers, renamed.wait_id),
        history=history,
    )


def _with_id(headers: Headers, wait_id: str) -> Headers:
    return tuple((name, wait_id.encode() if name == "WAIT_EXPIRATION_UUID" else value) for name, value in headers)


def _from_vector(name: str, given: dict[str, Any]) -> Malformed:
    """Return a vector's record under an id of its own, where its key is the vectors' id."""

    def own(text: str | None) -> bytes | None:
        return binary(id_of(name) if text == "019fc448-d29b-8abc-9def-0123456789ab" else text)

    headers = tuple((header, own(value)) for header, value in given["headers"])
    return Malformed(name, Outgoing(own(given["value"]), own(given["key"]), headers))
