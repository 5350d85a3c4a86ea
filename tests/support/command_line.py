"""The command line of `waitreg`, parsed and not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

import click

from waitreg.command import Command, Invocation
from waitreg.main import COMMANDS, waitreg


class Parsed(NamedTuple):
    """A subcommand, the values of its parameters, and the settings given with `--set`."""

    path: str
    values: Mapping[str, Any]
    overrides: Mapping[str, str]


def parsed(arguments: Sequence[str]) -> Parsed:
    """Parse arguments as `waitreg` does.

    Args:
        arguments: without the command itself.

    Raises:
        click.UsageError: they can't be typed.
    """
    contexts: list[click.Context] = []
    with patch.object(Command, "invoke", lambda _, context: contexts.append(context)):
        context = waitreg.make_context("waitreg", list(arguments), obj=(invocation := Invocation()))
        waitreg.invoke(context)
    (found,) = contexts
    return Parsed(found.command_path, found.params, invocation.overrides)


def all_commands() -> dict[str, Command]:
    """Return every subcommand by its path, such as `waitreg topics check`."""
    found: dict[str, Command] = {}
    for entry in COMMANDS:
        found |= dict(_commands(f"waitreg {entry.name}", entry.load()))
    return found


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, Command]]:
    if isinstance(command, click.Group):
        for name, member in command.commands.items():
            yield from _commands(f"{path} {name}", member)
    else:
        assert isinstance(command, Command)
        yield path, command
