"""Templates to HTML. Every value is escaped; a value that is missing is an error."""

from __future__ import annotations

from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from console.cells import cells, shown
from console.moments import ago
from console.page import Page, address
from redrive.filter import literal

# The navigation: address and title.
_MENU: Final = (
    ("/", "Now"),
    ("/instances", "Instances"),
    ("/dead-letters", "Dead letters"),
    ("/jobs", "Jobs"),
    ("/records", "Record"),
    ("/timeline", "Timeline"),
    ("/system", "System"),
    ("/help", "Help"),
)


def render(page: Page) -> str:
    """Return the HTML of a page."""
    return _environment().get_template(page.template).render(page.values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(cells=cells, shown=shown, ago=ago, address=address, literal=literal, menu=_MENU)
    return environment
