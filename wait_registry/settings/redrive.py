"""What operators do with dead letters: the topic that records it, and the limits of a redrive."""

from __future__ import annotations

from pydantic import Field, field_validator

from wait_registry.settings import Section
from wait_registry.settings.topics import DAY_MS


class OperationsSettings(Section):
    """The operations topic; `waitreg topics create` creates it with one partition, so that it has one order."""

    topic: str = Field("waitreg.operations", min_length=1, max_length=249)
    """name of the operations topic"""
    retention_ms: int = Field(400 * DAY_MS, ge=-1)
    """retention at creation, ms; longer than that of any dead letter topic; -1 keeps indefinitely"""

    @field_validator("retention_ms")
    @classmethod
    def _longer_than_a_day(cls, retention_ms: int) -> int:
        if 0 <= retention_ms < DAY_MS:
            raise ValueError(f"saw less than a day, expected {DAY_MS} or more, or -1: marks keep a redrive exact")
        return retention_ms


class RedriveSettings(Section):
    """The limits of `waitreg dlq redrive`."""

    rate: float = Field(10.0, gt=0, le=100_000)
    """records per second, if a redrive doesn't say"""
    max_rate: float = Field(500.0, gt=0, le=100_000)
    """most records per second that a redrive may ask for"""
    pause_above: float = Field(0.5, gt=0, le=1)
    """share of 100 records sent one after another that may be dead letters again; more pause the job"""
    canary_above: float = Field(0.1, ge=0, lt=1)
    """share of a canary's records that may be dead letters again"""
    canary_timeout_s: float = Field(600.0, gt=0)
    """longest wait for what becomes of a canary, besides the delays of retry topics, s"""
    approve_above: int | None = Field(None, ge=0)
    """a redrive of more dead letters begins only when another person has approved it; by default, no redrive needs that
    """
    approve_edits: bool = False
    """whether the redrive of an edited record begins only when another person has approved it"""
    max_redrives: int = Field(3, ge=1)
    """how often a record may be redriven"""
    transaction_timeout_ms: int = Field(30_000, ge=1000, le=900_000)
    """longest transaction and wait for the broker, ms"""
    tail_timeout_s: float = Field(45.0, gt=0)
    """longest wait for what the operations topic has beyond the tables, s"""
    max_tail_records: int = Field(200_000, ge=1)
    """how far the tables may be behind the operations topic, records"""
