"""Templates to HTML. Every value is escaped; a value that is missing is an error."""

from __future__ import annotations

from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from wait_registry.dead_letters.filter import literal
from wait_registry.postgres.query_file import query_names
from waitreg.console.cells import cells, shown
from waitreg.console.http.theme import CURRENT, Theme
from waitreg.console.moments import ago
from waitreg.console.page import Page, address

# The navigation: address and title.
_MENU: Final = (
    ("/", "Now"),
    ("/instances", "Instances"),
    ("/dead-letters", "Dead letters"),
    ("/jobs", "Jobs"),
    ("/audit", "Audit"),
    ("/records", "Record"),
    ("/timeline", "Timeline"),
    ("/system", "System"),
    ("/help", "Help"),
)
# What waitreg/console/static/keys.js does, for those who press "?".
_KEYS: Final = (
    ("j, k", "next, previous row"),
    ("Enter", "open the row"),
    ("x", "tick the row"),
    ("r", "dry run of a redrive of what is ticked; nothing is sent"),
    ("[, ]", "previous, next dead letter of the list that this tab showed last"),
    ("/", "first field of the page"),
    ("g and a letter", "the page that begins with this letter: g d is Dead letters"),
    ("?", "this list"),
)


def render(page: Page) -> str:
    """Return the HTML of a page, in the theme of the request that is being answered."""
    return _environment().get_template(page.template).render({**page.values, "theme": CURRENT.get()})


def _pieces(text: str) -> list[tuple[str, str]]:
    """Return a text by its names in backticks: what stands before each, and the name; the last has none."""
    parts = [*text.split("`"), ""]
    return list(zip(parts[::2], parts[1::2], strict=False))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        cells=cells, shown=shown, ago=ago, address=address, literal=literal, menu=_MENU, keys=_KEYS, themes=tuple(Theme)
    )
    environment.globals.update(pieces=_pieces, questions=frozenset(query_names()))
    return environment
