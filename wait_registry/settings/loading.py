"""Loading the settings: command line, environment, .env, waitreg.toml, defaults, in this order of precedence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from wait_registry.errors import ConfigurationError
from wait_registry.settings.bad_values import bad_values
from wait_registry.settings.masking import describe
from wait_registry.settings.root import Settings
from wait_registry.settings.sources import (
    Given,
    NamedSource,
    from_command_line,
    from_dotenv,
    from_environment,
    from_toml,
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
    file = _file_source(config_file)
    sources = [
        from_command_line(overrides),
        from_environment(os.environ if env is None else env),
        from_dotenv(DOTENV_FILE),
        file,
    ]
    given = _given(sources)
    try:
        return Settings(_build_sources=(tuple(sources), {}))
    except ValidationError as error:
        # `from None`: pydantic's own message would show the values, secrets among them.
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


def _given(sources: list[NamedSource]) -> dict[str, Given]:
    """Return every value with the source that it is taken from; report the unknown names of all sources at once."""
    given: dict[str, Given] = {}
    problems: list[str] = []
    for source in reversed(sources):
        try:
            given |= source.values
        except ConfigurationError as error:
            problems.append(str(error))
    if problems:
        raise ConfigurationError("\n".join(problems))
    return given
