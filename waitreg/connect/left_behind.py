"""What a connector leaves when it is removed."""

from __future__ import annotations

from collections.abc import Mapping


def left_behind(config: Mapping[str, str]) -> str:
    """Say what stays of a connector with this configuration, and what to do about it. Pure."""
    stays = "its offsets stay: applied again, it goes on from there"
    slot = config.get("slot.name")
    if slot is None:
        return stays
    return (
        f"{stays}. So does its replication slot, for which Postgres keeps all WAL from now on: if it isn't to come "
        f"back, select pg_drop_replication_slot('{slot}'). Without its slot it can't go on: before it is applied again "
        'its offsets must be forgotten, too (connect-configs/README.md, "When a source has lost its place")'
    )
