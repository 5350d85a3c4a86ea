"""Loading the settings: command line, environment, .env, waitreg.toml, defaults, in this order of precedence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from wait_registry.errors import ConfigurationError
from wait_registry.settings.names import find_setting
from wait_registry.settings.refusal import refusal
from wait_registry.settings.root import Settings
from wait_registry.settings.shown import describe
from wait_registry.settings.sources import (
    Given,
    Source,
    from_command_line,
    from_dotenv,
    from_environment,
    from_toml,
    known_values,
)

__all__ = ["DEFAULT_FILE", "describe", "load_settings"]

DEFAULT_FILE = Path("waitreg.toml")
DOTENV_FILE = Path(".env")

_NONE: Mapping[str, str] = {}


def load_settings(
    overrides: Mapping[str, str] = _NONE, config_file: Path | None = None, env: Mapping[str, str] | None = None
) -> Settings:
    """Read and validate all settings.

    Args:
        overrides: dotted name -> text, from the command line.
        config_file: a TOML file that must exist; ``waitreg.toml`` in the current folder, if there, when None.
        env: environment variables; this process's when None.

    Returns:
        The frozen tree of settings. Relations between them are checked by `wait_registry.settings.relations`, by each
        service for what it uses.

    Raises:
        ConfigurationError: unknown names in any source, each with the nearest known one, or values out of bounds, with
            what was given (never a secret), what is allowed and where it was given; a file that can't be read, or a
            current folder in which none can be looked for.
    """
    sources = [_file_source(config_file), from_dotenv(DOTENV_FILE)]
    sources += [from_environment(os.environ if env is None else env), from_command_line(overrides)]
    given = _merged(sources)
    try:
        return Settings(**_tree(given))
    except ValidationError as error:
        # `from None`: pydantic's own message would show the values, secrets among them.
        raise ConfigurationError(refusal(error, given)) from None


def _file_source(config_file: Path | None) -> Source:
    if config_file is not None:
        return from_toml(config_file)
    try:
        present = DEFAULT_FILE.is_file()
    except OSError as error:
        raise ConfigurationError(
            f"can't tell whether there is a {DEFAULT_FILE} in the current folder: {error.strerror or error}. "
            "Start in a folder that this user may enter"
        ) from error
    return from_toml(DEFAULT_FILE) if present else Source((), Path())


def _merged(sources: list[Source]) -> dict[str, Given]:
    merged: dict[str, Given] = {}
    problems: list[str] = []
    for source in sources:
        try:
            merged |= known_values(source)
        except ConfigurationError as error:
            problems.append(str(error))
    if problems:
        raise ConfigurationError("\n".join(problems))
    return merged


def _tree(given: Mapping[str, Given]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for one in given.values():
        found = find_setting(one.name)
        assert found is not None, one.name
        setting, key = found
        *sections, last = setting.name.split(".")
        place = tree
        for section in [*sections, last] if key is not None else sections:
            place = place.setdefault(section, {})
        place[last if key is None else key] = one.value
    return tree
