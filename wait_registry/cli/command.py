"""What a subcommand is, and what it is given when it runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wait_registry.errors import ConfigurationError

if TYPE_CHECKING:
    from wait_registry.settings.root import Settings

EXIT_CODES: Final[Mapping[int, str]] = {
    0: "done",
    1: "failed",
    2: "usage or configuration",
    3: "fenced: another owner is alive",
    4: "reconciliation broken",
}


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a subcommand: its parsed arguments and where its settings come from."""

    arguments: argparse.Namespace
    overrides: Mapping[str, str]
    config_file: Path | None

    def settings(self) -> Settings:
        """Load the settings of this call.

        Returns the frozen tree. Raises ConfigurationError for a missing file, an unknown name, a value out of bounds or
        a secret on the command line: let it end the command, its message says what to write instead.
        """
        from wait_registry.settings.command_line_secrets import refuse_secrets
        from wait_registry.settings.loading import load_settings

        if self.config_file is not None and not self.config_file.is_file():
            missing = f"settings file {str(self.config_file)!r} is missing"
            raise ConfigurationError(f"{missing}; --config takes an existing TOML file")
        refuse_secrets(self.overrides)
        return load_settings(self.overrides, self.config_file)


def no_arguments(_parser: argparse.ArgumentParser) -> None:
    """Leave a parser as it is: the subcommand has no arguments of its own."""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: what `waitreg --help` says of it, its arguments, and what it does.

    ``summary`` is its line in the overview, ``description`` the text of its own help, ``examples`` lines a user can
    type, ``exit_codes`` those it ends with. ``run`` returns the exit code or raises an error of the tree.
    """

    name: str
    group: str
    summary: str
    description: str
    examples: tuple[str, ...]
    run: Callable[[Invocation], int]
    configure: Callable[[argparse.ArgumentParser], None] = no_arguments
    exit_codes: tuple[int, ...] = field(default=(0, 1, 2))
