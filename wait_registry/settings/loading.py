"""Loading the settings: command line, environment, .env, waitreg.toml, defaults, in this order of precedence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from wait_registry.errors import ConfigurationError
from wait_registry.settings.bad_values import bad_values
from wait_registry.settings.sources import (
    NamedSource,
    from_command_line,
    from_dotenv,
    from_environment,
    from_toml,
)
from wait_registry.settings.tree import Settings

DEFAULT_FILE = Path("waitreg.toml")
DOTENV_FILE = Path(".env")

_NONE: Mapping[str, str] = {}


def load_settings(
    overrides: Mapping[str, str] = _NONE, config_file: Path | None = None, env: Mapping[str, str] | None = None
) -> Settings:
    """Read and validate all settings.

    Args:
        overrides: dotted name -> text, from the command line.
        config_file: a TOML file that must exist; by default ``waitreg.toml`` in the current folder, if there is one.
        env: environment variables; by default this process's.

    Returns:
        The frozen tree of settings. Each service checks the relations between the settings that it uses
        (`wait_registry.settings.relations`).

    Raises:
        ConfigurationError: unknown names, each with the nearest known one; values out of bounds, with the value (not a
            secret), the bounds and the source; or a file or a current folder that can't be read.
    """
    file = _file_source(config_file)
    sources = [
        from_command_line(overrides),
        from_environment(os.environ if env is None else env),
        from_dotenv(DOTENV_FILE),
        file,
    ]
    if problems := [problem for source in reversed(sources) for problem in source.problems]:
        raise ConfigurationError("\n".join(problems))
    try:
        return Settings(_build_sources=(tuple(sources), {}))
    except ValidationError as error:
        # `from None`: pydantic's own message would show the values, secrets among them.
        given = {name: value for source in reversed(sources) for name, value in source.values.items()}
        raise ConfigurationError(bad_values(error, given)) from None


def _file_source(config_file: Path | None) -> NamedSource:
    if config_file is not None:
        return from_toml(config_file)
    try:
        present = DEFAULT_FILE.is_file()
    except OSError as error:
        raise ConfigurationError(
            f"can't look for {DEFAULT_FILE} in the current folder: {error.strerror or error}. "
            "Start in a folder that this user may enter"
        ) from error
    return from_toml(DEFAULT_FILE) if present else NamedSource(())
