"""Messages about values that the models refuse: what was given and where, and what is allowed, with the unit."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from wait_registry.settings.masking import shown_value
from wait_registry.settings.names import find_setting
from wait_registry.settings.sources import Given


def bad_values(error: ValidationError, given: Mapping[str, Given]) -> str:
    """Describe every refused value on a line of its own; secrets are never shown."""
    details = error.errors(include_url=False, include_context=False)
    # A union reports each of its members; its last one is the most general.
    lines = {_place(detail["loc"]): _line(detail, given) for detail in details}
    return "\n".join(dict.fromkeys(lines.values()))


def _place(location: tuple[int | str, ...]) -> tuple[int | str, ...]:
    return (_name_at(location), *(part for part in location if isinstance(part, int)))


def _line(detail: ErrorDetails, given: Mapping[str, Given]) -> str:
    name = _name_at(detail["loc"])
    found = find_setting(name)
    if found is None:
        return f"{name}: {detail['msg']}"
    setting, key = found
    one = given.get(name)
    where = f"{one.where}: " if one else ""
    seen = shown_value(setting, key, one.value if one else detail["input"])
    allowed = " ".join(filter(None, (setting.kind, setting.bounds)))
    return f"{where}{name} is {seen}; allowed: {allowed}. It is: {setting.description} ({detail['msg']})"


def _name_at(location: tuple[int | str, ...]) -> str:
    parts = [part for part in location if isinstance(part, str)]
    for length in range(len(parts), 0, -1):
        found = find_setting(".".join(parts[:length]))
        if found is not None:
            setting, key = found
            # Below a table comes the key, then pydantic's name for the member of the union.
            return setting.name if key is None else f"{setting.name}.{parts[setting.name.count('.') + 1]}"
    return ".".join(map(str, location))
