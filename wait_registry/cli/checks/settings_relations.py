"""Do the settings of a service contradict each other?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from wait_registry.diagnosis import Diagnosis, Severity

if TYPE_CHECKING:
    from wait_registry.settings.relations import Service
    from wait_registry.settings.root import Settings

_DOTTED: Final = re.compile(r"[a-z_]+(?:\.[a-z_]+)+")


def relations(service: Service, settings: Settings) -> Iterator[Diagnosis]:
    """Yield a line for every contradiction among what this service uses, or one that says that there is none."""
    from wait_registry.settings.relations import relation_problems

    subject = f"settings of the {service}"
    problems = relation_problems(settings, service)
    for problem in problems:
        yield replace(problem, subject=subject, fix=_fix(problem.message))
    if not problems:
        yield Diagnosis(subject, Severity.OK, "no contradictions")


def _fix(message: str) -> str:
    """Say where the first setting that a message names is set; the message itself says to what."""
    from wait_registry.settings.names import find_setting, variable_of

    known = (name for name in _DOTTED.findall(message) if find_setting(name))
    name = next(known, None)
    if name is None:
        return "`waitreg config --all` lists every setting and where it comes from"
    return f"--set {name}=..., {variable_of(name)}=..., or waitreg.toml"
