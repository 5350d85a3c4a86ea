"""Settings against the embedded stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from tests.support.naming import Names
from wait_registry.settings.tree import Settings


def settings_against(broker: str, postgres: str, names: Names, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Return settings with topics, group and schema of this test's own.

    Args:
        broker: the broker's address.
        postgres: the address of Postgres.
        names: where names come from.
        overrides: dotted name -> value, for example ``{"processor.ttl_s": 5}``; they win.
    """
    values: dict[str, Any] = {
        "kafka.bootstrap_servers": broker,
        "postgres.url": postgres,
        "postgres.schema": names.schema,
        "wait.topic": names("wait"),
        "wait.partitions": 4,
        "wait.replication_factor": 1,
        "wait.min_insync_replicas": 1,
        "dead_letter.topic": names("dlq"),
        "dead_letter.partitions": 2,
        "operations.topic": names("operations"),
        "processor.group": names("group"),
        "processor.topics": (names("input"),),
        "telemetry.port": 0,
        "spark.master": "local[2]",
        **(overrides or {}),
    }
    tree: dict[str, Any] = {}
    for dotted, value in values.items():
        section, _, name = dotted.partition(".")
        place = tree.setdefault(section, {})
        *inner, last = name.split(".")
        for part in inner:
            place = place.setdefault(part, {})
        place[last] = value
    return Settings(**tree)


def changed(settings: Settings, section: str, **values: Any) -> Settings:
    """Return the settings with other values in one section."""
    return settings.model_copy(update={section: getattr(settings, section).model_copy(update=values)})


def with_broker(settings: Settings, bootstrap: str) -> Settings:
    return changed(settings, "kafka", bootstrap_servers=bootstrap)


def with_postgres(settings: Settings, url: str) -> Settings:
    """Return the settings with another address of Postgres, or another role there."""
    return changed(settings, "postgres", url=SecretStr(url))
