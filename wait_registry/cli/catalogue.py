"""All subcommands, in the order of `waitreg --help`."""

from __future__ import annotations

from typing import Final

from wait_registry.cli import (
    config,
    db,
    demo,
    doctor,
    downstream,
    jars,
    load,
    metrics,
    processor,
    query,
    rebuild,
    reconcile,
    sink,
    stack,
    sweeper,
    topics,
)
from wait_registry.cli.command import Command
from wait_registry.cli.connect import command as connect

COMMANDS: Final[tuple[Command, ...]] = (
    processor.COMMAND,
    sink.COMMAND,
    sweeper.COMMAND,
    topics.COMMAND,
    db.COMMAND,
    jars.COMMAND,
    connect.COMMAND,
    doctor.COMMAND,
    config.COMMAND,
    metrics.COMMAND,
    query.COMMAND,
    rebuild.COMMAND,
    demo.COMMAND,
    stack.COMMAND,
    load.COMMAND,
    downstream.COMMAND,
    reconcile.COMMAND,
)
