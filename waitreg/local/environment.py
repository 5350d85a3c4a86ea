"""Settings as the environment variables that make a service process read the very same ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, SecretStr

from wait_registry.settings.tree import Settings

PREFIX = "WAITREG_"


def as_environment(settings: Settings) -> dict[str, str]:
    """Return the WAITREG_* variables of everything that differs from its default."""
    return dict(_variables(settings, PREFIX))


def _variables(model: BaseModel, prefix: str) -> Iterator[tuple[str, str]]:
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        variable = f"{prefix}{(field.alias or name).upper()}"
        if isinstance(value, BaseModel):
            yield from _variables(value, f"{variable}__")
        elif value is not None and value != field.default:
            plain = value.get_secret_value() if isinstance(value, SecretStr) else value
            yield variable, str(plain) if isinstance(plain, str) else json.dumps(plain, default=_given)


def _given(model: BaseModel) -> dict[str, Any]:
    """Return a section of a list as it was given."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)
