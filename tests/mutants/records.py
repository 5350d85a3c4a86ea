"""Mutants of the record formats."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.mutants.mutant import mutant

Patch = pytest.MonkeyPatch


@mutant("P1.7")
def one_id_for_all_groups(patch: Patch) -> None:
    """A wait ID doesn't depend on the group, so that groups settle each other's records."""
    from wait_registry.records import wait_id

    original = wait_id.wait_id

    def without_group(cluster_id: str, topic: str, partition: int, offset: int, group: str, timestamp_ms: int) -> str:
        return original(cluster_id, topic, partition, offset, "", timestamp_ms)

    patch.setattr(wait_id, "wait_id", without_group)


@mutant("P3.15")
def another_hash_for_partitions(patch: Patch) -> None:
    """A processor puts a wait ID where no other producer puts it."""
    from wait_registry.records import wait_partition

    patch.setattr(wait_partition, "_SEED", 0)


@mutant("P5.1")
def empties_null_headers(patch: Patch) -> None:
    """A null header becomes an empty one."""
    from wait_registry.records import headers

    original = headers.encode_headers_json
    patch.setattr(
        headers, "encode_headers_json", lambda pairs: original(tuple((name, value or b"") for name, value in pairs))
    )


@mutant("P5.2")
def empties_null_values(patch: Patch) -> None:
    """A null value becomes an empty one."""
    from wait_registry.records import names, wait_record

    patch.setattr(wait_record, "_NULL", (names.ORIGINAL_VALUE_NULL, b"false"))


@mutant("P5.3")
def takes_any_lineage_number(patch: Patch) -> None:
    """Headers of the original that look like ours are cut off."""
    from wait_registry.records import lineage, names

    def block_start(headers: Any) -> int | None:
        found = [number for number, (name, _) in enumerate(headers) if name == names.WAIT_LINEAGE]
        return found[-1] if found else None

    patch.setattr(lineage, "_block_start", block_start)


@mutant("P5.4")
def cuts_off_the_block_of_another_group(patch: Patch) -> None:
    """A record that carries the block of another group loses it."""
    from wait_registry.records import consumed
    from wait_registry.records.lineage import split_lineage

    class AnyGroup(str):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = str.__hash__

    def split(headers: Any) -> Any:
        originals, lineage, letter = split_lineage(headers)
        return originals, lineage and lineage._replace(group=AnyGroup()), letter

    patch.setattr(consumed, "split_lineage", split)


@mutant("P4.11")
def registers_headers_that_no_reader_takes(patch: Patch) -> None:
    """A record with more headers than readers take is registered, quarantined, and never exported."""
    from wait_registry.records import headers, wait_record

    patch.setattr(wait_record, "readable_headers_json", headers.encode_headers_json)


@mutant("P7.4")
def registers_what_only_compression_makes_small(patch: Patch) -> None:
    """A record of any size is registered if it compresses well."""
    from wait_registry.records.wait_record import WaitRecordEncoder

    original: Any = WaitRecordEncoder.__init__

    def begin(self: WaitRecordEncoder, *common: Any) -> None:
        original(self, *common[:5], sys.maxsize)

    patch.setattr(WaitRecordEncoder, "__init__", begin)
