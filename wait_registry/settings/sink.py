"""The sink: who keeps the tables, batch sizes and scratch files."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from wait_registry.settings import Section


class SinkKind(StrEnum):
    """Who keeps the tables in Postgres."""

    SPARK = "spark"
    CONNECT = "connect"


class SinkSettings(Section):
    """The stream from wait and dead letter topics to Postgres: ours, by Spark, or a Kafka Connect sink's."""

    kind: SinkKind = SinkKind.SPARK
    """who keeps the tables of registrations and dead letters: 'spark' (`waitreg sink`) or 'connect' (a Kafka Connect
    sink; `waitreg sink` then reads the operations topic alone)
    """
    connect_group: str = Field("connect-wait.sink", min_length=1)
    """consumer group of the Connect sink of the wait topic: connect-<name of the connector>"""
    dead_letter_topics: tuple[str, ...] = ()
    """dead letter topics to read; by default the one of dead_letter.topic"""
    poll_interval_s: float = Field(1.0, ge=0.1)
    """pause between reads of a topic without a backlog, s"""
    max_batch_records: int = Field(250_000, ge=1)
    """records read or written at once, approximately"""
    max_batch_bytes: int = Field(33_554_432, ge=65_536, le=268_435_456)
    """target size of what is read or written at once, bytes"""
    restart_backoff_max_s: float = Field(30.0, gt=0)
    """longest pause before a failed sink starts again, s"""
    idle_progress_s: float = Field(30.0, gt=0, le=60)
    """pause between progress rows of an idle topic, s"""
    offset_group: str = ""
    """consumer group that mirrors the sink's offsets; by default waitreg.sink.<wait topic>"""
