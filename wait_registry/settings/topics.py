"""The topics this system owns: wait topic, dead letter topics, redelivery topics."""

from __future__ import annotations

from pydantic import Field, field_validator

from wait_registry.settings import Section

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class WaitTopicSettings(Section):
    """The wait topic; `waitreg topics create` creates it with these values, and every start checks them."""

    topic: str = Field("waitreg.wait", min_length=1, max_length=249)
    """name of the wait topic"""
    partitions: int = Field(8, ge=1, le=10_000)
    """partitions at creation; this number is used for the topic's whole life"""
    replication_factor: int = Field(3, ge=1)
    """replicas at creation; fewer than 3 is for development and logs a warning"""
    min_insync_replicas: int = Field(2, ge=1)
    """replicas that must acknowledge a wait record"""
    delete_retention_ms: int = Field(72 * HOUR_MS, ge=1)
    """how long tombstones survive compaction, ms"""
    segment_ms: int = Field(HOUR_MS, ge=1000)
    """age at which a segment is rolled, ms"""
    max_compaction_lag_ms: int = Field(6 * HOUR_MS, ge=1000)
    """a settled registration is compacted within this, ms"""
    max_message_bytes: int = Field(2_097_152, ge=1024)
    """largest input with its headers in JSON, uncompressed, bytes"""
    skew_allowance_s: float = Field(5.0, ge=0, le=3600)
    """clock difference between hosts that is tolerated, s"""


class DeadLetterSettings(Section):
    """The topics for records that can't be processed."""

    topic: str = Field("waitreg.dlq", min_length=1)
    """dead letter topic; may contain {topic} and {group}"""
    partitions: int = Field(4, ge=1, le=10_000)
    """partitions at creation"""
    retention_ms: int = Field(30 * 24 * HOUR_MS, ge=-1)
    """retention at creation, ms, an hour or more; -1 keeps indefinitely (redelivery topics do)"""

    @field_validator("retention_ms")
    @classmethod
    def _long_enough_for_the_sink(cls, retention_ms: int) -> int:
        if 0 <= retention_ms < HOUR_MS:
            raise ValueError(
                f"saw less than an hour, expected {HOUR_MS} or more, or -1: the sink must be able to read a dead letter"
            )
        return retention_ms
