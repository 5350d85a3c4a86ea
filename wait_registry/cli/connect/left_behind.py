"""What a connector leaves when it is removed."""

from __future__ import annotations

from collections.abc import Mapping

from wait_registry.cli.connect.place import exports


def left_behind(config: Mapping[str, str]) -> str:
    """Say what stays of a connector with this configuration, and what to do about it. Pure."""
    said = ["its offsets stay: applied again, it goes on from there"]
    if slot := config.get("slot.name"):
        said.append(
            "So does its replication slot, for which Postgres keeps all WAL from now on: if it isn't to come back, "
            f"select pg_drop_replication_slot('{slot}'). Without its slot it can't go on: before it is applied again "
            'its offsets must be forgotten, too (connect-configs/README.md, "When a source has lost its place")'
        )
    if exports(config):
        said.append(
            "Before a sweeper of ours may run, what is exported must be closed, and that place forgotten "
            '(connect-configs/README.md, "From a source back to our sweeper")'
        )
    return ". ".join(said)
