"""The sweeper: who exports, when it runs and how much it exports at once."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from wait_registry.settings import Section
from wait_registry.settings.processor import ExpiryPolicy


class SweeperKind(StrEnum):
    """Who exports expired registrations."""

    SPARK = "spark"
    CONNECT = "connect"


class SweeperSettings(Section):
    """The scheduled export of expired registrations: ours, by Spark, or a Kafka Connect source's."""

    kind: SweeperKind = SweeperKind.SPARK
    """who exports: 'spark' (`waitreg sweeper`) or 'connect' (a Kafka Connect source)"""
    interval_s: float = Field(30.0, gt=0)
    """pause between sweeps, s"""
    chunk_rows: int = Field(5_000, ge=1)
    """rows exported in one Kafka transaction, at most"""
    chunk_bytes: int = Field(8_388_608, ge=1024)
    """bytes exported in one Kafka transaction, at most"""
    transaction_timeout_ms: int = Field(30_000, ge=1000, le=30_000)
    """transaction.timeout.ms, ms"""
    max_tail_records: int = Field(2_000_000, ge=1)
    """wait IDs held of a partition's tail; a longer tail skips the partition"""
    tail_timeout_s: float = Field(60.0, gt=0)
    """how long to wait for an open transaction at the end of the wait topic, s"""
    retention_days: int = Field(30, ge=1)
    """age at which dead_letter, quarantine and sweep rows are purged"""
    default_dead_letter_topic: str = ""
    """for wait records that name none (legacy format); by default the one of dead_letter.topic"""
    default_expiry_policy: ExpiryPolicy = ExpiryPolicy.DLQ
    """for wait records that name none"""
    default_max_deliveries: int = Field(3, ge=1, le=1000)
    """for wait records that name none"""
