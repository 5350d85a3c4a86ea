"""The retry record: the original record, its lineage, and the error because of which it is handled again later."""

from __future__ import annotations

from collections.abc import Sequence

from wait_registry.records import header_names
from wait_registry.records.dead_letter import Failure, Reason
from wait_registry.records.lineage import Lineage, append_lineage


def retry_headers(
    original_headers: Sequence[tuple[str, bytes | None]], lineage: Lineage, error: BaseException
) -> list[tuple[str, bytes | None]]:
    """Return the headers of a retry record; key and value are the original's, its timestamp is the broker's.

    Args:
        original_headers: of the record's first delivery.
        lineage: of this delivery's registration, with ``delivery`` already the number of the next delivery.
        error: its class and message are kept, bounded as in a dead letter.
    """
    failure = Failure.from_exception(Reason.FAILED, error, 0)
    encoded = append_lineage(original_headers, lineage)
    for name, text in (
        (header_names.RETRY_ERROR_CLASS, failure.error_class),
        (header_names.RETRY_ERROR_MESSAGE, failure.error_message),
    ):
        if text is not None:
            encoded.append((name, text.encode()))
    return encoded
