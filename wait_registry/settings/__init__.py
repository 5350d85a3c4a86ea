"""The settings of all services: sections of frozen models, the sources they come from, the relations between them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen group of settings; every field has a type, a unit in its name, a default and a bound.

    The text below a field is its description in messages, in `waitreg config --all` and in docs/configuration.md.
    pydantic's ``use_attribute_docstrings`` reads it, too, but at each start, which takes 70 ms.
    """

    # TOML knows `inf` and `nan`, and no sum of times with one of them means anything.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)
