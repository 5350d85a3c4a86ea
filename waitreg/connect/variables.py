"""What `${name}` in a connector's file stands for: settings, parts of Postgres' address, references to secrets."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from sweeper.export_decision import default_dead_letter_topic
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.topic_specs import dead_letter_topics
from wait_registry.records.dead_letter import DEAD_LETTER_EXTRA_BYTES
from wait_registry.settings.masking import value_of
from wait_registry.settings.names import find_setting, nearest, setting_names
from wait_registry.settings.tree import Settings
from waitreg.connect.postgres_address import PARTS, postgres_part


def variable(name: str, settings: Settings) -> str | None:
    """Return the text that ``${name}`` stands for.

    Args:
        name: a setting's dotted name, or one of `DERIVED`.
        settings: where it is looked up.

    Returns:
        The value; a list is joined by commas. For ``connect.secrets...`` a reference (``${env:NAME}``) that the worker
        resolves: it never returns a secret. None if there is no value: omit the property.

    Raises:
        ConfigurationError: no such variable (with the nearest one), one that isn't set, or a secret.
    """
    if name in DERIVED:
        return DERIVED[name](settings)
    setting, key = find_setting(name) or (None, None)
    if name in _INSTEAD or (setting is not None and setting.is_secret):
        instead = _INSTEAD.get(name, "a reference to where the worker finds it, ${env:NAME} or ${file:PATH:KEY}")
        raise ConfigurationError(
            f"${{{name}}} would put a secret into the connector's configuration, which Kafka Connect shows to every "
            f"client of its REST API: write {instead}"
        )
    if setting is None:
        raise ConfigurationError(_unknown(name))
    if setting.is_table or key is not None:
        raise ConfigurationError(f"${{{name}}} is a table of properties; write what you need of it into the file")
    value = value_of(settings, name)
    if name.startswith("connect.secrets."):
        return f"${{{value}}}" if value else ""
    return _text(name, value)


def _text(name: str, value: Any) -> str:
    if value is None or value in ("", ()):
        raise ConfigurationError(f"${{{name}}} isn't set, and this connector needs it: --set {name}=...")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)


def _copied_dead_letter_topics(settings: Settings) -> str:
    topics = dead_letter_topics(settings, "sink")
    if not topics:
        raise ConfigurationError(
            f"dead_letter.topic is {settings.dead_letter.topic!r}, and the values of its braces aren't known here: "
            "list the topics in sink.dead_letter_topics"
        )
    return ",".join(topics)


DERIVED: Final[Mapping[str, Callable[[Settings], str | None]]] = {
    **{f"postgres.{part}": partial(postgres_part, part) for part in PARTS},
    "sink.dead_letter_topics": _copied_dead_letter_topics,
    "sweeper.dead_letter_topic": default_dead_letter_topic,
    "dead_letter.max_message_bytes": lambda settings: str(settings.wait.max_message_bytes + DEAD_LETTER_EXTRA_BYTES),
}
# Names that people try first, and what they should write.
_INSTEAD: Final = {
    "postgres.url": "${postgres.jdbc_url}, or ${postgres.host}, ${postgres.port} and ${postgres.database}, with "
    "${postgres.user} and ${connect.secrets.postgres_password}",
    "postgres.password": "${connect.secrets.postgres_password}",
}


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, [*DERIVED, *setting_names()], 1, 0.75)
    close = near[0] if near else nearest(name)
    said = f"there is no variable ${{{name}}}"
    if close is not None:
        return f"{said}; did you mean ${{{close}}}?"
    return f"{said}: they are the settings (`waitreg config --all`) and ${{{'}, ${'.join(DERIVED)}}}"
