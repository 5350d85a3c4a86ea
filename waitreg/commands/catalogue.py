"""All subcommands, in the order of `waitreg --help`."""

from __future__ import annotations

from typing import Final

from waitreg.commands import (
    config,
    connect,
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
from waitreg.commands.command import Command

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
