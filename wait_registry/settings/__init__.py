"""The settings of all services: sections of frozen models, the sources they come from, the relations between them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen group of settings; every field has a type, a unit in its name, a default, a bound and a reason."""

    # TOML knows `inf` and `nan`, and no sum of times with one of them means anything.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)
