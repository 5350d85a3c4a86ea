"""Reads the next ranges of a topic, as much at once as fits: the limit follows what the last ranges held."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sink.position import TopicPartition
from sink.read.kafka_reader import Batch, BatchTooLarge, RangeReader
from sink.read.range_plan import ReadLimit, offsets_of, plan
from sink.read.record_columns import omitted_bytes
from wait_registry.settings.sink import SinkSettings

log = logging.getLogger(__name__)


class BatchReader:
    """Plans ranges within `ReadLimit` and reads them; used by one thread at a time."""

    def __init__(self, reader: RangeReader, settings: SinkSettings, largest_record_bytes: int) -> None:
        self._reader = reader
        self._limit = ReadLimit.careful(settings.max_batch_records, settings.max_batch_bytes, largest_record_bytes)

    def read(self, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> Batch | None:
        """Read what follows ``positions``, up to ``ends`` (the last stable offsets) at most; None if nothing does.

        Raises what `RangeReader.read` raises; `BatchTooLarge` only for a single offset.
        """
        while ranges := plan(positions, ends, self._limit.offsets):
            offsets = offsets_of(ranges)
            try:
                batch = self._reader.read(ranges)
            except BatchTooLarge as error:
                smaller = self._limit.halved(offsets)
                if smaller is None:
                    raise
                topic = next(iter(ranges)).topic
                log.warning("%s: %s: reading %d offsets at once from here on", topic, error, smaller.offsets)
                self._limit = smaller
            else:
                nbytes = batch.records.nbytes + omitted_bytes(batch.records)
                self._limit = self._limit.after(offsets, batch.records.num_rows, nbytes)
                return batch
        return None
