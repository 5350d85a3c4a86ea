"""The command line of `waitreg`, parsed and not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias
from unittest.mock import patch

import click

from waitreg.command import Command, Entry, Group, Invocation
from waitreg.main import waitreg

_Loaded: TypeAlias = tuple[str, click.Command, Entry | None]


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
    return {path: command for path, command, _ in _loaded("waitreg", waitreg, None) if isinstance(command, Command)}


def all_entries() -> dict[str, tuple[click.Command, Entry]]:
    """Return what is loaded when it is named, by its path: subcommands, and groups of them."""
    return {path: (command, entry) for path, command, entry in _loaded("waitreg", waitreg, None) if entry is not None}


def extras() -> dict[str, str]:
    """Return the extras that subcommands need, by path."""
    found: dict[str, str] = {}
    for path, command, entry in _loaded("waitreg", waitreg, None):
        extra = (entry and entry.extra) or (isinstance(command, Command) and command.extra)
        if extra:
            found[path] = extra
    return found


def _loaded(
    path: str, command: click.Command, entry: Entry | None
) -> Iterator[tuple[str, click.Command, Entry | None]]:
    yield path, command, entry
    if isinstance(command, Group):
        for each in command.entries.values():
            yield from _loaded(f"{path} {each.name}", command.load(each), each)
        for name, member in command.commands.items():
            yield from _loaded(f"{path} {name}", member, None)
