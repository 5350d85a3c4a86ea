"""Whether log, dead letters and view agree at the end of a scenario, whose records are too many for the checker."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.log_reading import WaitLog
from tests.chaos.stage import Place, Stage
from tests.support.kafka_io import read_all

DEAD_LETTER_IDS = "select wait_expiration_uuid from dead_letter"


def inexact(stage: Stage, place: Place, log: WaitLog, published: int) -> Iterator[str]:
    """Say what is wrong with a log that was read to its end, its dead letters and their table; nothing when exact."""
    registered = sum(len(offsets) for offsets in log.registered.values())
    if registered != published:
        yield f"{published} records were published, {registered} of them ever registered"
    if log.standing:
        yield f"{len(log.standing)} registrations stand at the end"
    if log.false_exports:
        yield f"{len(log.false_exports)} false exports, {log.false_exports[0]!r} among them"
    if not log.outcomes["done"]:
        yield "nothing was done"
    if not log.outcomes["expired"]:
        yield "nothing expired, although a processor was killed: nothing was shown about exports"
    letters = read_all(stage.stack.bootstrap_servers, place.settings.dead_letter.topic, "read_committed")
    ids = [letter.text("WAIT_EXPIRATION_UUID").encode() for letter in letters]
    expired = [key for key, letter in zip(ids, letters, strict=True) if letter.text("DLQ_REASON") == "expired"]
    if sorted(expired) != sorted(log.exported) or len(expired) != log.outcomes["expired"]:
        yield f"{len(expired)} expired dead letters for {log.outcomes['expired']} expired tombstones"
    rows = sorted(key.encode() for (key,) in place.database.rows(place.settings, DEAD_LETTER_IDS))
    if rows != sorted(ids):
        yield f"{len(rows)} dead letters in the table, {len(ids)} in the topic"
