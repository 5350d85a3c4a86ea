"""All targets, by name."""

from __future__ import annotations

from tests.fuzz.targets import due_row, records, sink_batch, texts

TARGETS = {target.name: target for target in (*texts.TARGETS, *records.TARGETS, due_row.TARGET, sink_batch.TARGET)}
