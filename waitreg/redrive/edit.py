"""An edit: the record that is sent in place of a dead letter's own; command and console have only this one."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from wait_registry.dead_letters.difference import Content, difference
from wait_registry.errors import ConfigurationError, DataError
from wait_registry.kafka.targets import Target, record_size
from wait_registry.kafka.topic_specs import operations_spec
from wait_registry.records.header_names import BLOCK_NAMES, WAIT_LINEAGE, WAITREG_EDITED
from wait_registry.records.headers import Headers, decode_headers_json, encode_headers_json, require_sendable_names
from wait_registry.records.operation import Replacement, Requested, encode_event
from wait_registry.records.wait_id import wait_id
from wait_registry.settings.tree import Settings
from waitreg.redrive.job_decision import Contents

_LOCKED: Final = BLOCK_NAMES | {WAIT_LINEAGE, WAITREG_EDITED}
# What the reason, which is given after the dry run, may add to a request, bytes.
_REASON_BYTES: Final = 4_096


class Review(NamedTuple):
    """What an edit changes.

    Attributes:
        replacement: the record that would be sent.
        sizes: for key, headers and value: size and SHA-256 before and after; headers are compared as JSON.
        lines: the difference, byte for byte.
    """

    replacement: Replacement
    sizes: Sequence[tuple[str, str, str]]
    lines: Sequence[str]


def most_edit_bytes(settings: Settings) -> int:
    """Return how large an edit can be by the settings, bytes: the operations topic takes no larger request."""
    return int(operations_spec(settings).creation_config["max.message.bytes"])


def is_locked(name: str) -> bool:
    """Return whether a header is one that this system writes, so that an edit must leave it as it is."""
    return name in _LOCKED or name.startswith("DLQ_")


def review(before: Content, after: Content) -> Review:
    """Return what an edit changes, and the record that would be sent.

    Args:
        before: the record of the dead letter.
        after: the record that is wanted, with all its headers.

    Raises:
        ConfigurationError: nothing is changed, a header is locked, or its name can't be sent.
    """
    if before == after:
        raise ConfigurationError("nothing is edited: `waitreg dlq redrive` sends the record as it is")
    _require_editable(before.headers, after.headers)
    replacement = Replacement(
        key=after.key,
        value=after.value,
        headers=tuple(header for header in after.headers if header[0] != WAITREG_EDITED),
        edited=record_digest(before),
        new_key=after.key != before.key,
    )
    return Review(replacement, list(_sizes(before, after)), list(difference(before, after)))


def what_changes(before: Content, replacement: Replacement) -> Sequence[str]:
    """Return the lines that show what the edit of a record changes, byte for byte, or that it is of another record."""
    if record_digest(before) != replacement.edited:
        return ["The tables have another record at this place than the one that was edited."]
    headers = tuple(header for header in before.headers if header[0] != WAITREG_EDITED)
    after = Content(replacement.key, replacement.headers, replacement.value)
    return list(difference(before._replace(headers=headers), after))


def record_digest(content: Content) -> str:
    """Return the SHA-256 of a record: of key, headers in JSON and value, each with its length before it."""
    found = hashlib.sha256()
    for part in (content.key, encode_headers_json(content.headers), content.value):
        found.update(b"null;" if part is None else b"%d;" % len(part))
        found.update(part or b"")
    return found.hexdigest()


def replacement_digest(replacement: Replacement) -> str:
    """Return the SHA-256 of an edit: of what is sent, and of what it replaces."""
    return hashlib.sha256(replacement.model_dump_json().encode()).hexdigest()


def with_headers(headers: Headers, given: Sequence[tuple[str, bytes]], without: Collection[str]) -> Headers:
    """Return headers of which some are set or removed; the others keep their order.

    Args:
        headers: the original ones.
        given: the headers that a name has afterwards, in the place of its first one now, or at the end.
        without: names of which none is kept.

    Raises:
        ConfigurationError: no header has a name that is to be removed.
    """
    if absent := sorted(set(without) - {name for name, _ in headers}):
        raise ConfigurationError(f"the record has no header {absent[0]!r} that could be removed")
    set_names, wanted = {name for name, _ in given}, dict[str, list[bytes]]()
    for name, value in given:
        wanted.setdefault(name, []).append(value)
    found: list[tuple[str, bytes | None]] = []
    for header in (*headers, *given):
        name = header[0]
        if name in wanted:
            found += [(name, one) for one in wanted.pop(name)]
        elif name not in without and name not in set_names:
            found.append(header)
    return tuple(found)


def replaced(row: Contents, job: Requested, cluster_id: str) -> Contents | None:
    """Return the contents of a dead letter with the record that a job sends, if its edit is of this record.

    Args:
        row: the contents that the tables have of the dead letter.
        job: which sends an edited record or, without one, the dead letter's own.
        cluster_id: of the Kafka cluster, for the idempotency key of the edited record.

    Returns:
        None if the row has another record than the one that was edited.
    """
    edit = job.replacement
    if edit is None:
        return row
    try:
        headers = decode_headers_json(row.headers_json.encode())
    except DataError:
        return None
    if record_digest(Content(row.key, headers, row.body)) != edit.edited:
        return None
    name = job.job.encode()
    sent = encode_headers_json((*edit.headers, (WAITREG_EDITED, name)))
    key = _edited_key(row, cluster_id, name)
    return row._replace(key=edit.key, body=edit.value, headers_json=sent.decode(), idempotency_key=key)


def require_room(job: Requested, operations: Target) -> None:
    """Refuse an edit that the operations topic doesn't take.

    Args:
        job: which sends an edited record.
        operations: the operations topic, and how large a record it takes.

    Raises:
        ConfigurationError: the request, which has the record in base64, is too large.
    """
    size = record_size(job.job.encode(), encode_event(job), []) + _REASON_BYTES
    if size > operations.max_message_bytes:
        raise ConfigurationError(
            operations.problem
            or f"the edited record takes {size} bytes in the operations topic {operations.topic}, whose "
            f"max.message.bytes is {operations.max_message_bytes}: raise that, or make the record smaller"
        )


def _edited_key(row: Contents, cluster_id: str, edit: bytes) -> str | None:
    """Return the idempotency key of an edited record; None if the place of its first delivery isn't known."""
    partition, offset, timestamp_ms = row.original_partition, row.original_offset, row.original_timestamp_ms
    if partition is None or offset is None or timestamp_ms is None or row.group is None:
        return None
    return wait_id(cluster_id, (row.original_topic, partition, offset), row.group, timestamp_ms, edit)


def _require_editable(before: Headers, after: Headers) -> None:
    locked = [[header for header in headers if is_locked(header[0])] for headers in (before, after)]
    if locked[0] != locked[1]:
        name, _ = next(one for one in (*locked[1], *locked[0]) if locked[0].count(one) != locked[1].count(one))
        raise ConfigurationError(f"wait-registry writes the header {name!r}, so it can't be set, changed or removed")
    try:
        require_sendable_names(after)
    except DataError as error:
        raise ConfigurationError(str(error)) from error


def _sizes(before: Content, after: Content) -> Iterator[tuple[str, str, str]]:
    sides = [(side.key, encode_headers_json(side.headers), side.value) for side in (before, after)]
    for name, left, right in zip(("key", "headers", "value"), *sides, strict=True):
        yield name, _size(left), _size(right)


def _size(data: bytes | None) -> str:
    return "null" if data is None else f"{len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}"
