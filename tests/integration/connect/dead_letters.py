"""Records of a dead letter topic: what the golden vectors read, hostile originals, and what is no dead letter."""

from __future__ import annotations

from itertools import count

from tests.support.golden_vectors import golden_vectors, headers_of
from tests.support.kafka_io import Headers, Outgoing
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage
from waitreg.load.hostile import ODDITIES, hostile

LINEAGE = Lineage(
    original_topic="orders",
    original_partition=2**31 - 1,
    original_offset=2**63 - 1,
    original_timestamp_ms=-1,
    original_timestamp_type="none",
    wait_id="019fc448-d29b-8abc-9def-0123456789ab",
    wait_partition=1,
    wait_offset=99,
    group="расчёты-€",
    instance="hôte-1",
    delivery=3,
)
FAILURE = Failure(Reason.FAILED, "orders.Refused", "no such €", "line 1\nline 2", 1_795_227_601_000)


def dead_letters(partitions: int) -> list[Outgoing]:
    """Return them all, with null and empty values among them, over a number of partitions."""
    letters: list[tuple[bytes | None, bytes | None, Headers]] = []
    for vector in golden_vectors("dead_letter"):
        if vector.operation == "decode":
            letters.append((b"key", b"{}", headers_of(vector.input)))
    for index in range(len(ODDITIES)):
        odd = hostile(11, index)
        letters.append((odd.key, odd.value, tuple(dead_letter_headers(odd.headers, LINEAGE, FAILURE))))
    letters += [(None, None, ()), (b"\xff", b"\x00", (("null", None), ("bytes", b"\xff\xfe"), ("", b"")))]
    return [Outgoing(value, key, headers, n % partitions) for n, (key, value, headers) in zip(count(), letters)]
