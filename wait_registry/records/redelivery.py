"""Redelivery: an expired record given to its group again, through a topic of that group alone."""

from __future__ import annotations

from collections.abc import Sequence

from wait_registry.errors import DataError
from wait_registry.records.lineage import Lineage, append_lineage


def redelivery_topic(topic: str, group: str) -> str:
    """Return the topic through which a group gets records of an input topic again; other groups don't see them."""
    return f"{topic}.{group}.redeliver"


def redelivery_headers(
    original_headers: Sequence[tuple[str, bytes | None]], lineage: Lineage
) -> list[tuple[str, bytes | None]]:
    """Return the headers of a redelivered record; key and value are the original's.

    :param lineage: that of the expired registration, but with ``delivery`` already the number of the next delivery.
    :raises DataError: group or delivery are unknown (older dialect): nobody could count it; dead-letter the record.
    """
    if lineage.group is None or lineage.delivery is None:
        raise DataError(
            f"redelivery of {lineage.wait_id}: saw group {lineage.group!r} and delivery {lineage.delivery!r}, "
            "expected both to be known"
        )
    return append_lineage(original_headers, lineage)
