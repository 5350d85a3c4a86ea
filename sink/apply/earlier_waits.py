"""What a batch holds of a key, in its partition, before the last record."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sink.read.batch import KEY, OFFSET, PARTITION, VALUE, records_of


class EarlierWaits:
    """Looks back in a batch; the batch is scanned once, at the first look, however many follow."""

    def __init__(self, batch: pa.Table) -> None:
        self._batch = batch

    def before(self, key: bytes, partition: int, offset: int) -> Iterator[dict[str, Any]]:
        """Yield the wait records of a key below an offset, newest first, up to the tombstone that ends them."""
        rows = self._rows.get((key, partition))
        if rows is None:
            return
        for record in records_of(self.repeated.take(rows)):
            if record[OFFSET] >= offset:
                continue
            if record[VALUE] is None:
                return
            yield record

    @cached_property
    def repeated(self) -> pa.Table:
        """The records of keys that have more than one, newest first: only these have something before them."""
        counts = self._batch.select([KEY]).group_by(KEY).aggregate([(KEY, "count")])
        keys = counts.filter(pc.greater(counts[f"{KEY}_count"], 1))[KEY]
        return self._batch.filter(pc.is_in(self._batch[KEY], keys)).sort_by([(OFFSET, "descending")])

    @cached_property
    def _rows(self) -> dict[tuple[bytes, int], list[int]]:
        rows: dict[tuple[bytes, int], list[int]] = {}
        places = zip(self.repeated[KEY].to_pylist(), self.repeated[PARTITION].to_pylist(), strict=True)
        for row, place in enumerate(places):
            rows.setdefault(place, []).append(row)
        return rows
