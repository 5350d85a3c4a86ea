"""Do the settings of a service contradict each other?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from waitreg.commands.check_line import CheckLine, Standing

if TYPE_CHECKING:
    from wait_registry.settings.relations import Service
    from wait_registry.settings.root import Settings

MEND = "change the setting as the line says: --set, WAITREG_*, .env or waitreg.toml (`waitreg config` shows all)"


def relations(service: Service, settings: Settings) -> Iterator[CheckLine]:
    """Yield a line for every contradiction among what this service uses, or one that says that there is none."""
    from wait_registry.settings.relations import relation_problems

    subject = f"settings of the {service}"
    problems = relation_problems(settings, service)
    for problem in problems:
        standing = Standing.ERROR if problem.fatal else Standing.WARNING
        yield CheckLine(subject, standing, problem.message, MEND)
    if not problems:
        yield CheckLine(subject, Standing.OK, "no contradictions")
