"""One corpus of wait records for what keeps the tables or exports from them: shapes, histories, what is unreadable."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.golden_vectors import binary, golden_vectors
from tests.support.kafka_io import Headers, Outgoing
from tests.support.wait_record_encoding import encode_wait_record
from wait_registry.records.original import Original, Source
from wait_registry.records.times import format_utc_ms
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_record import WaitRecord
from waitreg.load.hostile import ODDITIES, hostile

TOPIC = "orders"
TIMESTAMP_MS = 1_795_227_600_123
HUGE_BYTES = 1_300_000
# What is written of one ID, in order: its wait record (w), a tombstone (t); `,` is a long way.
HISTORIES = ("w", "w,w", "ww", "wt", "w,t", "w,t,t", "w,t,w", "wtw", "w,w,t", "t,w", "tw", "t,w,t", "t")
# What a compacted topic refuses, or what is no wait record at all.
NOT_IN_A_WAIT_TOPIC = ("null key", "null value (a tombstone)")
# Fields of the original or of the wait record, by name.
Changes = Mapping[str, Any]
# Not every client can send these names; only a wait record can hold them.
ODD_NAMES: Mapping[str, Changes] = {
    "NUL in a header's name": {"headers": (("a\0b", b"1"), ("plain", b"2"))},
    "half a surrogate pair in a header's name": {"headers": (("a\ud800", b"1"), ("plain", b"2"))},
}
SHAPES: Mapping[str, Changes] = {
    "no timestamp": {"timestamp_ms": -1, "timestamp_type": "none"},
    "before 1970": {"timestamp_ms": -86_400_001},
    "append time": {"timestamp_type": "append"},
    "beyond any calendar": {"timestamp_ms": 2**63 - 1},
    "before any calendar": {"timestamp_ms": -(2**63)},
    "the largest numbers": {"partition": 2**31 - 1, "offset": 2**63 - 1},
    "huge": {"value": bytes(range(256)) * (HUGE_BYTES // 256)},
    "null and empty headers": {"headers": (("a", None), ("a", b""), ("", None), ("", b"\xff\x00"))},
    "numbers as text": {"key": b"00123", "value": b"007", "headers": (("number", b"00123"), ("n", b"1e3"))},
    "JSON null": {"key": b"null", "value": b"null", "headers": (("null", b"null"), ("true", b"true"))},
    "redelivered for the last time": {
        "source": Source(f"{TOPIC}.billing.redeliver", 0, 17),
        "delivery": 3,
        "idempotency_key": "019fc448-d29b-8abc-9def-0123456789ac",
        "expiry_policy": "redeliver",
        "headers": (("tenant", b"acme"),),
    },
    "traced": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "vendor=1"},
    "a group of other letters": {"group": "расчёты-€", "instance": "hôte-1"},
}
LEGACY: Mapping[str, Headers] = {
    "legacy format": (
        ("ORIGINAL_TOPIC", TOPIC.encode()),
        ("PARTITION", b"3"),
        ("ORIGINAL_OFFSET", b"41"),
        ("ORIGINAL_KEY", b"k"),
        ("ORIGINAL_HEADERS", b'{"a": "1", "b": null, "c": ""}'),
    ),
    "legacy format, the least": (("ORIGINAL_TOPIC", TOPIC.encode()),),
}


@dataclass(frozen=True, slots=True)
class Corpus:
    """The records of one wait topic."""

    dead_letter_topic: str
    expires_at_ms: int

    def log(self, odd: Mapping[str, Changes] | None = None) -> list[Outgoing]:
        """Return registrations of every shape, open and resolved, with every history, in the order of a log.

        Between two records of an ID that are a long way apart are those of all other IDs. ``odd`` are further shapes.
        """
        written = [*((wait, "w") for wait in self._shapes("")), *((wait, "w,t") for wait in self._shapes(", resolved"))]
        written += [(self.plain(name, **changes), "w") for name, changes in (odd or {}).items()]
        written += [(self.plain(f"history {history}"), history) for history in HISTORIES]
        stretches: defaultdict[int, list[Outgoing]] = defaultdict(list)
        for wait, history in written:
            stone = Outgoing(None, wait.key, tuple(tombstone_headers(Outcome.DONE)))
            for number, stretch in enumerate(history.split(",")):
                stretches[number] += [wait if letter == "w" else stone for letter in stretch]
        return [record for _, records in sorted(stretches.items()) for record in records]

    def plain(self, name: str, **changes: Any) -> Outgoing:
        """Return a wait record; fields of the original or of the wait record are changed by their names."""
        original = Original(TOPIC, 3, len(name), TIMESTAMP_MS, "create", b"customer-17", name.encode(), ())
        of_original = {field: changes.pop(field) for field in Original._fields if field in changes}
        record = WaitRecord(
            original=original._replace(**of_original),
            wait_id=id_of(name),
            expires_at_ms=self.expires_at_ms,
            group="billing",
            instance="host-1/2026-11-21T02:00:00Z",
            delivery=1,
            dead_letter_topic=self.dead_letter_topic,
            expiry_policy="dlq",
            max_deliveries=3,
        )
        value, headers = encode_wait_record(record._replace(**changes))
        return Outgoing(value, record.wait_id.encode(), tuple(headers))

    def malformed(self) -> list[Outgoing]:
        """Return what the golden vectors refuse as a wait record, and more of the kind."""
        found = []
        for file in ("wait_record", "wait_record_legacy"):
            for vector in golden_vectors(file):
                if vector.expected == "error" and vector.name not in NOT_IN_A_WAIT_TOPIC:
                    found.append(_from_vector(f"{file}: {vector.name}", vector.input))
        for name, header, value in (
            ("half a surrogate pair in the headers", "ORIGINAL_HEADERS", rb'[["\ud800",null]]'),
            ("NUL in the instance", "WAIT_INSTANCE", b"host\x001"),
            ("an expiry in the year 10000", "WAIT_EXPIRATION_TIME", b"+10000-01-01T00:00:00.000Z"),
        ):
            plain = self.plain(name)
            headers = tuple((key, value if key == header else old) for key, old in plain.headers)
            found.append(Outgoing(b"{}", plain.key, headers))
        return [*found, Outgoing(None, b"no id")]

    def _shapes(self, suffix: str) -> Iterator[Outgoing]:
        for index, name in enumerate(ODDITIES):
            odd = hostile(7, index)
            yield self.plain(f"hostile_{name}{suffix}", key=odd.key, value=odd.value, headers=tuple(odd.headers))
        for name, changes in SHAPES.items():
            yield self.plain(f"{name}{suffix}", **changes)
        zoneless = format_utc_ms(self.expires_at_ms).removesuffix("Z").encode()
        for name, headers in LEGACY.items():
            key = id_of(f"{name}{suffix}").encode()
            yield Outgoing(b"{}", key, (*headers, ("WAIT_EXPIRATION_TIME", zoneless)))


def id_of(name: str) -> str:
    """Return the wait ID of a name."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def _from_vector(name: str, given: Changes) -> Outgoing:
    """Return a vector's record under an ID of its own, where its key is the vectors' ID."""

    def own(text: str | None) -> bytes | None:
        return binary(id_of(name) if text == "019fc448-d29b-8abc-9def-0123456789ab" else text)

    headers = tuple((header, own(value)) for header, value in given["headers"])
    return Outgoing(own(given["value"]), own(given["key"]), headers)
